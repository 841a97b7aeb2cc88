"""All commands and their options. Their implementations are imported when a command runs."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from gem_core.cli._commands import load_command, load_others
from gem_core.cli._terminal import fail, say
from gem_core.errors import GemError


class PluginGroup(TyperGroup):
    """The built-in commands and those of plugins, of which only the one that runs is loaded; the help loads them all.

    The context is `Any` because typer made its type private.
    """

    _all_loaded = False

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name."""
        return super().get_command(ctx, cmd_name) or load_command(cmd_name)

    def list_commands(self, ctx: Any) -> list[str]:
        """All commands, for the help."""
        if not self._all_loaded:
            self._all_loaded = True
            self.commands.update([*load_others({*self.commands})])
        return super().list_commands(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is called. For a misspelt name all are loaded, so that the error suggests those of plugins."""
        if self.get_command(ctx, args[0]) is None:
            self.list_commands(ctx)
        return super().resolve_command(ctx, args)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run. An error of this project is shown as a message, without a traceback."""
        try:
            return super().main(*args, **kwargs)
        except GemError as error:
            fail(error)
            raise SystemExit(1) from error

    def invoke(self, ctx: Any) -> Any:
        """Run the command; Ctrl-C ends any command with exit status 130."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            say("\nInterrupted.")
            raise typer.Exit(130) from None


# Plain help (no rich markup): faster, and a plugin's help text cannot break it.
app = typer.Typer(
    cls=PluginGroup,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        say(f"gem-core {version('gem-core')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def gem_core(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Text environments for LLM agents."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("list")
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
    from gem_core.cli._listing import show_registrations

    show_registrations(pattern, tag or [], json)


@app.command()
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
    from gem_core.cli._play import ask, draw, parse_settings, play_episodes

    play_episodes(
        env_id, parse_settings(settings or []), draw if random else ask, seed, episodes, data_index=data_index
    )


@app.command()
def doctor(json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Check this installation and this machine. Fails if a plugin is broken."""
    from gem_core.cli._doctor import examine

    if not examine(json):
        raise typer.Exit(1)
