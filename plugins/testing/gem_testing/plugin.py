"""What this package registers: the command `check`."""

from __future__ import annotations

from typing import Annotated

import typer

from gem_core.hookspecs import hookimpl

GEM_PLUGIN_API = ">=1,<2"


@hookimpl
def gem_commands(cli: typer.Typer) -> None:
    """Add `gem-core check`."""
    cli.command()(check)


def check(
    id_: Annotated[str, typer.Argument(metavar="ID", help="An environment, a tool or an advantage estimator.")],
    backend: Annotated[
        str | None,
        typer.Option(help="Also play the environment in a vector of this backend: sync, thread, process or ray."),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="How many seeds of the environment to play, from 0. By default 5.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Set an argument. Repeat to set several.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check an environment, a tool or an estimator. Fails if it does not keep its contract."""
    from gem_core.cli.play import parse_settings
    from gem_testing.command import show_verdict

    if not show_verdict(id_, parse_settings(settings or []), seeds, backend, json):
        raise typer.Exit(1)
