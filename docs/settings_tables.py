"""Writes the table of settings into the page of each adapter, from the settings that the adapter declares, and
docs/defaults.md from the adapters' tables of their frameworks' settings.

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

from gem_core.plugins import manager
from gem_core.specs import AdapterSpec
from gem_train.defaults import framework_settings
from gem_train.settings import RunSettings

FOLDER = Path(__file__).parents[1] / "adapters"
DEFAULTS_PAGE = Path(__file__).with_name("defaults.md")
DEFAULTS = """# Settings of the frameworks: what acts

<!-- Written by docs/settings_tables.py from the defaults.csv of each adapter. -->

Each framework has settings of its own that touch rewards, advantages, the loss, lengths, sampling, the age of tokens or
the number of updates. A default of theirs may change what is trained without a word. These tables judge every one:

- `shown`: it acts, and the first line of a run ("rebn active: ...; acting: ...") names it with its value, unless that
  is the neutral one.
- `refused`: any value but the neutral one is an error.
- `neutral`: it has no effect here.
- `users`: a choice such as the size of a batch, or a setting that only acts with another one.

A test of each adapter reads the installed framework, and fails where a setting is new, gone or has another default."""
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
    """What a setting means; Hydra, which reads sections, takes the keys of an example without quotation marks."""
    text: str = kind.declared()[name].metadata["help"]
    return re.sub(r'"(\w+)":', r"\1:", text) if kind.prefix == "gem." else text


def default(one: Field[Any]) -> str:
    """The default of a setting."""
    if one.default is MISSING:
        return "" if one.default_factory is MISSING else "none"
    if one.default is None:
        return "none"
    if isinstance(one.default, bool):
        return "yes" if one.default else "no"
    return f"`{one.default}`"


def settings_of(adapter: AdapterSpec) -> type[RunSettings]:
    """The settings that an adapter declares: the class of `settings.py` that is closest to the shared ones."""
    module = importlib.import_module(f"{adapter.entry_point}.settings")
    own = [one for one in vars(module).values() if isinstance(one, type) and one.__module__ == module.__name__]
    return next(one for one in own if RunSettings in one.__bases__)


def page(adapter: AdapterSpec) -> tuple[Path, str]:
    """The page of an adapter, with its table as it should be."""
    path = FOLDER / adapter.id / "README.md"
    kind = settings_of(adapter)
    pattern = re.compile(f"{re.escape(START)}.*?{re.escape(END)}", re.DOTALL)
    text, found = pattern.subn(lambda _: f"{START}\n\n{table(kind)}\n\n{END}", path.read_text())
    if found != 1:
        sys.exit(f"{path} needs one place for the table, between {START} and {END}")
    return path, text


def defaults_page(adapters: list[AdapterSpec]) -> tuple[Path, str]:
    """docs/defaults.md: what the frameworks' own settings do, a table for each adapter."""
    parts = [DEFAULTS]
    for adapter in adapters:
        lines = ["| setting | its default | here | neutral | |", "| --- | --- | --- | --- | --- |"]
        for one in framework_settings(str(adapter.entry_point)):
            neutral = f"`{one.neutral}`" if one.neutral else ""
            lines.append(f"| `{one.setting}` | `{one.default}` | {one.here} | {neutral} | {one.why} |")
        parts += [f"## [{adapter.distribution}](../adapters/{adapter.id}/README.md)", "\n".join(lines)]
    return DEFAULTS_PAGE, "\n\n".join(parts) + "\n"


def main(arguments: list[str]) -> None:
    adapters = [one.spec for one in manager.all_registrations("gem_adapters")]
    pages_now = [*map(page, adapters), defaults_page(adapters)]
    stale = [(path, text) for path, text in pages_now if not path.exists() or path.read_text() != text]
    if arguments == ["--check"] and stale:
        pages = ", ".join(str(path) for path, _ in stale)
        sys.exit(f"{pages}: out of date. Next: python docs/settings_tables.py")
    for path, text in stale:
        path.write_text(text)


if __name__ == "__main__":
    main(sys.argv[1:])
