"""Output to the terminal. Text of environments and plugins is shown literally, never as markup."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import sys
import threading
from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import typer

from gem_core.errors import printable

if TYPE_CHECKING:
    from gem_core.plugins import PluginManager

PATIENCE = 2.0
"""Seconds after which a plugin that is still running is named."""

Row: TypeAlias = Mapping[str, str | None]
"""The cells of a row by the name of their column."""

_STATUS_COLOURS = {
    "ok": "green",
    "yes": "green",
    "broken": "red",
    "failed": "red",
    "duplicate": "red",
    "disabled": "yellow",
}


def first_line(error: object) -> str:
    """The first line of an error's message."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def say(text: str = "", *, err: bool = False, newline: bool = True, **style: Any) -> None:
    """Print text. `style` is for `typer.style`; it is ignored if output is not a terminal or `NO_COLOR` is set."""
    colour = False if os.environ.get("NO_COLOR") else None
    shown = printable(text)
    typer.echo(typer.style(shown, **style) if style else shown, err=err, nl=newline, color=colour)


def warn(text: str) -> None:
    """Print a warning to stderr."""
    say(f"Warning: {text}", err=True, fg="yellow")


def fail(error: object) -> None:
    """Print an error to stderr."""
    say(f"Error: {error}", err=True, fg="red")


@contextlib.contextmanager
def plugins_at_work(manager: PluginManager) -> Generator[None]:
    """Send what plugins print to stderr, as standard output may be JSON; name a plugin that hangs."""
    before, manager.around = manager.around, _named_when_slow
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        manager.around = before


@contextlib.contextmanager
def _named_when_slow(activity: str) -> Generator[None]:
    hint = "Set GEM_DISABLE_PLUGINS to the names of plugins to leave out."
    timer = threading.Timer(PATIENCE, say, [f"Still {activity} ... {hint}"], {"err": True, "fg": "yellow"})
    timer.daemon = True
    timer.start()
    try:
        yield
    except KeyboardInterrupt:
        say(f"\nInterrupted while {activity}. {hint}", err=True)
        raise
    finally:
        timer.cancel()


def print_json(document: Any) -> None:
    """Print a JSON document in ASCII, which is safe for any terminal and encoding."""
    typer.echo(json.dumps(document, indent=2))


def print_table(title: str, rows: Sequence[Row]) -> None:
    """Print rows that have the same columns. Without rows, print nothing, not even the title."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    if not rows:
        return
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for number, column in enumerate(rows[0]):
        table.add_column(column, no_wrap=number == 0, overflow="fold")
    for row in rows:
        table.add_row(*(_cell(column, value) for column, value in row.items()))
    say(title, bold=True)
    console = Console()
    # In a pipe or a file a row stays one line, so that grep works. On a narrow terminal wrapped rows read better than
    # columns a few letters wide.
    console.width = max(console.width, 100) if sys.stdout.isatty() else 10_000
    console.print(table)
    say()


def _cell(column: str, value: Any) -> Any:
    from rich.text import Text

    return Text(printable(value or ""), style=_STATUS_COLOURS.get(value, "") if column == "status" else "")


def prepare() -> None:
    """Set up the streams and logs of this process for a terminal. Only the console script calls this."""
    _set_errors(sys.stdin, "replace")
    _set_errors(sys.stdout, "backslashreplace")
    # Broken plugins are logged as warnings, and the commands show them in their own output.
    logging.getLogger("gem_core").addHandler(_ToTerminal(logging.ERROR))


def _set_errors(stream: Any, errors: str) -> None:
    # A character that the terminal's encoding lacks, or an invalid byte, must not end the command.
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors=errors)


class _ToTerminal(logging.Handler):
    """Shows log records as warnings, with an exception in one line."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        warn(record.getMessage() + (f": {type(error).__name__}: {first_line(error)}" if error else ""))
