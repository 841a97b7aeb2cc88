"""Options of a series of runs, kept beside its results: a series that continues has those it began with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

NAME = "options.json"


def keep(folder: Path, options: Mapping[str, Any]) -> None:
    """Write the options into a new folder, or compare them with those that its results were made with.

    Args:
        folder: of the results; made where it is missing.
        options: everything that changes a result, by name; values that JSON can carry.

    Raises:
        SystemExit: the folder has results of other options, or of unknown ones.
    """
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / NAME
    given = json.loads(json.dumps(options))
    if not file.exists():
        if any(one.name != _unfinished(file).name for one in folder.iterdir()):
            raise SystemExit(
                f"{folder} has files, but no {NAME}, so nobody knows with which options its results were made. Give "
                "another --output"
            )
        _unfinished(file).write_text(json.dumps(given, indent=1))
        _unfinished(file).replace(file)
    kept = json.loads(file.read_text())
    differ = [name for name in dict.fromkeys([*kept, *given]) if kept.get(name) != given.get(name)]
    if differ:
        each = "; ".join(f"{name} was {kept.get(name)!r} and is {given.get(name)!r}" for name in differ)
        raise SystemExit(f"{folder} has results of other options: {each}. Give the same ones, or another --output")


def _unfinished(file: Path) -> Path:
    """Where a file is written before it has its name, so that no part of it is ever read."""
    return file.with_suffix(".part")
