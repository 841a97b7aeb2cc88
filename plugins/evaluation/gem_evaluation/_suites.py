"""Suites: what is evaluated, in a TOML file.

    repeats = 4                       # of every entry that has none of its own

    [[entries]]
    id = "math:Sample"
    tools = ["python:Interpreter"]
    name = "math with Python"         # needed where an id is there twice

Fields of an entry are those of `Entry`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from gem_core.errors import near_matches
from gem_evaluation._errors import EvaluationError
from gem_evaluation._settings import Entry
from gem_evaluation._toml import read_toml

SHIPPED = Path(__file__).with_name("suite_files")


class _Suite(msgspec.Struct, forbid_unknown_fields=True):
    entries: list[dict[str, Any]]
    tasks: int | None = None
    repeats: int | None = None


def suite_names() -> list[str]:
    """The suites that come with this package."""
    return sorted(path.stem for path in SHIPPED.glob("*.toml"))


def load_suite(name: str, tasks: int | None = None, repeats: int | None = None) -> list[Entry]:
    """The entries of a suite.

    Args:
        name: one that comes with this package, or a path that ends in `.toml`.
        tasks, repeats: in place of those of the suite.

    Raises:
        EvaluationError: there is no such suite, or it cannot be read.
    """
    path = Path(name) if name.endswith(".toml") else SHIPPED / f"{name}.toml"
    if not path.exists() and not name.endswith(".toml"):
        known = suite_names()
        raise EvaluationError(
            f"no suite {name!r}.{near_matches(name, known)} There are: {', '.join(known)}; or give a .toml file"
        )
    try:
        suite = msgspec.convert(read_toml(path), _Suite)
        entries = [
            msgspec.convert({"tasks": suite.tasks, "repeats": suite.repeats or 1, **entry}, Entry)
            for entry in suite.entries
        ]
    except (OSError, ValueError) as error:
        raise EvaluationError(f"the suite {path} cannot be read: {error}") from error
    return [msgspec.structs.replace(one, tasks=tasks or one.tasks, repeats=repeats or one.repeats) for one in entries]
