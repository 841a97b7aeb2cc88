"""The commands and their options. Their implementations are imported when a command runs."""

from __future__ import annotations

from typing import Annotated

import typer


def list_registrations(
    pattern: Annotated[
        str | None, typer.Argument(help="Only ids that contain this text, or match it if it contains * or ?.")
    ] = None,
    tag: Annotated[
        list[str] | None, typer.Option(metavar="TAG", help="Only with this tag. Repeat to ask for several.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the environments, tools and estimators of every plugin."""
    from gem_commands._listing import show_registrations

    show_registrations(pattern, tag or [], json)


def play(
    env_id: Annotated[str, typer.Argument(metavar="ID", help="For example game:GuessTheNumber-v0-easy.")],
    random: Annotated[bool, typer.Option("--random", help="Play random valid actions.")] = False,
    seed: Annotated[int | None, typer.Option(help="Seed of the first episode.")] = None,
    data_index: Annotated[
        int | None, typer.Option(min=0, help="Row of the data for the first episode, in environments over data.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Set an argument of the environment. Repeat to set several."),
    ] = None,
    episodes: Annotated[int, typer.Option(min=1, help="How many episodes.")] = 1,
) -> None:
    """Play an environment in the terminal."""
    from gem_commands._play import ask, draw, play_episodes
    from gem_core.cli import parse_settings

    play_episodes(
        env_id, parse_settings(settings or []), draw if random else ask, seed, episodes, data_index=data_index
    )


def doctor(json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Check this installation and this machine. Fails if a plugin is broken."""
    from gem_commands._doctor import examine

    if not examine(json):
        raise typer.Exit(1)
