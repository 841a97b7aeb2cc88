"""The command line, `gem-core`, and what commands of plugins share. Importing this imports neither typer nor rich."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_core.lazy import lazy_exports

if TYPE_CHECKING:
    from gem_core.cli._settings import parse_settings as parse_settings
    from gem_core.cli._terminal import Row as Row
    from gem_core.cli._terminal import first_line as first_line
    from gem_core.cli._terminal import plugins_at_work as plugins_at_work
    from gem_core.cli._terminal import print_json as print_json
    from gem_core.cli._terminal import print_table as print_table
    from gem_core.cli._terminal import say as say
    from gem_core.cli._terminal import warn as warn
    from gem_core.errors import printable as printable

_TERMINAL = ("Row", "first_line", "plugins_at_work", "print_json", "print_table", "printable", "say", "warn")
_HOME = {"parse_settings": "_settings"} | dict.fromkeys(_TERMINAL, "_terminal")

__getattr__, __dir__ = lazy_exports(__name__, _HOME)


def main() -> None:
    """Run the command line; the entry point of the console script."""
    from gem_core.cli._app import app
    from gem_core.cli._terminal import prepare

    prepare()
    app(prog_name="gem-core")
