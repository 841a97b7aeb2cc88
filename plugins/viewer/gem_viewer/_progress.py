"""A line that counts episodes while a page is written."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager


@contextmanager
def counting(total: int) -> Generator[Callable[[int], None], None, None]:
    """Show how many of these episodes are written; on a terminal only.

    Args:
        total: number of episodes.

    Yields:
        A function that is told how many more were written.
    """
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    console = Console(stderr=True)
    columns = (TextColumn("episodes"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as shown:
        task = shown.add_task("episodes", total=total)
        yield lambda more: shown.advance(task, more)
