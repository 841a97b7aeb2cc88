"""The command line itself; all commands are plugins'."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from gem_core.cli._commands import load_command, load_others
from gem_core.cli._terminal import fail, say
from gem_core.errors import GemError


class PluginGroup(TyperGroup):
    """The commands of plugins, of which only the one that runs is loaded; the help loads them all.

    The context is `Any` because typer made its type private.
    """

    _all_loaded = False

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name."""
        found = super().get_command(ctx, cmd_name) or load_command(cmd_name)
        if found is None:
            self.list_commands(ctx)  # so that the message names the nearest one
        return found

    def list_commands(self, ctx: Any) -> list[str]:
        """All commands, for the help."""
        if not self._all_loaded:
            self._all_loaded = True
            self.commands.update([*load_others({*self.commands})])
        return super().list_commands(ctx)

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
