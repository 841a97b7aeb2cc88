"""`gem-core export`: environments in the form of other hubs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gem_core.cli import parse_settings, plugins_at_work, say
from gem_core.plugins import manager
from gem_openenv._exporting import write_package

export = typer.Typer(help="Write an environment in the form of another hub.")


@export.callback()
def _group() -> None:  # pyright: ignore[reportUnusedFunction]  # a group, though it has one command so far
    pass


@export.command("openenv")
def export_openenv(
    env_id: Annotated[str, typer.Argument(metavar="ID", help="For example game:GuessTheNumber-v0-easy.")],
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="A new or empty folder; by default named after the id.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Set an argument of the environment. Repeat to set several."),
    ] = None,
    reward_range: Annotated[
        tuple[float, float],
        typer.Option(metavar="LOW HIGH", help="Least and largest reward of an episode, as the package declares them."),
    ] = (-1.0, 1.0),
) -> None:
    """Write a package for OpenEnv: a server with the same transitions, and a client."""
    with plugins_at_work(manager):
        folder = write_package(env_id, parse_settings(settings or []), out, reward_range)
    say(f"Wrote {folder}\nNext: cd {folder} && openenv validate --level static --skip-build")
    say("Serve it: uvicorn server.app:app --port 8000, and play it: gem-core play openenv:http://127.0.0.1:8000")
