"""Writes the tables of settings in docs/, one per training framework, from the settings that its adapter declares.

python docs/settings_tables.py            # write
python docs/settings_tables.py --check    # fail if a table is not what it would write
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from dataclasses import MISSING, Field
from pathlib import Path
from typing import Any

from gem_train.settings import RunSettings

FOLDER = Path(__file__).parent
ADAPTERS = ("trl", "verl", "openrlhf", "oat", "roll")
START, END = "<!-- settings: written by docs/settings_tables.py -->", "<!-- end of settings -->"


def table(kind: type[RunSettings]) -> str:
    """The settings of an adapter, as Markdown: names as users write them, defaults, meanings."""
    return "\n".join(["| setting | default | meaning |", "| --- | --- | --- |", *rows(kind)])


def rows(kind: type[RunSettings]) -> Iterator[str]:
    """One line per setting. Those that the framework has already come last, without a default of ours."""
    for name, one in kind.offered().items():
        yield f"| `{kind.spelled(name)}` | {default(one)} | {meaning(kind, name)} |"
    for name in kind.owned:
        yield f"| `{kind.spelled(name)}` | the framework's | {meaning(kind, name)} |"


def meaning(kind: type[RunSettings], name: str) -> str:
    """What a setting means; Hydra's command line takes the keys of an example without quotation marks."""
    text: str = kind.declared()[name].metadata["help"]
    return re.sub(r'"(\w+)":', r"\1:", text) if kind.__module__ == "gem_verl.settings" else text


def default(one: Field[Any]) -> str:
    """The default of a setting."""
    if one.default is MISSING:
        return "" if one.default_factory is MISSING else "none"
    if one.default is None:
        return "none"
    if isinstance(one.default, bool):
        return "yes" if one.default else "no"
    return f"`{one.default}`"


def page(adapter: str) -> tuple[Path, str]:
    """The page of an adapter, with its table as it should be."""
    path = FOLDER / f"{adapter}.md"
    module = importlib.import_module(f"gem_{adapter}.settings").__name__
    [kind] = [one for one in RunSettings.__subclasses__() if one.__module__ == module]
    pattern = re.compile(f"{re.escape(START)}.*?{re.escape(END)}", re.DOTALL)
    text, found = pattern.subn(lambda _: f"{START}\n\n{table(kind)}\n\n{END}", path.read_text())
    if found != 1:
        sys.exit(f"{path} needs one place for the table, between {START} and {END}")
    return path, text


def main(arguments: list[str]) -> None:
    stale = [(path, text) for path, text in map(page, ADAPTERS) if path.read_text() != text]
    if arguments == ["--check"] and stale:
        sys.exit(f"{', '.join(path.name for path, _ in stale)}: out of date. Next: python docs/settings_tables.py")
    for path, text in stale:
        path.write_text(text)


if __name__ == "__main__":
    main(sys.argv[1:])
