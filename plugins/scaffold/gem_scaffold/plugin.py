"""What this package adds: `gem-core new`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_core.hookspecs import hookimpl

if TYPE_CHECKING:
    import typer

GEM_PLUGIN_API = ">=1,<2"


@hookimpl
def gem_commands(cli: typer.Typer) -> None:
    """`gem-core new`."""
    from gem_scaffold.command import new

    cli.command("new")(new)
