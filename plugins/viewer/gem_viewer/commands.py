"""`gem-core view`."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Annotated

import typer

from gem_core.cli import say, warn
from gem_core.errors import MissingExtraError
from gem_core.installation import install_line

_LARGE = 60_000_000  # bytes; what mail and chats hardly take


def view(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH...",
            help="Runs: folders of records, of reports or of `gem-core eval`, or files of recorded episodes.",
        ),
    ],
    export: Annotated[
        Path | None, typer.Option(metavar="FILE.html", help="Write one file that any browser opens, and end.")
    ] = None,
    split: Annotated[
        bool, typer.Option("--split", help="With --export: put the episodes into a folder beside the file.")
    ] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the server; 0 takes a free one.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the browser.")] = True,
) -> None:
    """Look at runs of training and evaluation: curves, episodes, groups, tokens.

    Several runs are shown over each other. Without --export, a server on this machine shows them, and follows a run
    while it trains; Ctrl-C ends it.
    """
    from gem_train.records import open_records

    if split and export is None:
        raise typer.BadParameter("it goes with --export", param_hint="--split")
    runs = [open_records(path) for path in paths]
    for records in runs:
        for gap in records.gaps:
            warn(f"{records.name}: {gap}")
    if export is None:
        _check_extra()
        from gem_viewer._server import serve

        serve(runs, port, browser=browser)
        return
    from gem_viewer._page import write_page
    from gem_viewer._progress import counting

    with counting(sum(len(records.summaries) for records in runs)) as done:
        written = write_page(runs, export, split=split, done=done)
    for gap in written.gaps:
        warn(gap)
    say(f"Wrote {' and '.join(map(str, written.paths))}: {written.size / 1e6:.1f} MB. Open it in a browser.")
    if written.size > _LARGE and not split:
        say("It is large for a mail. --split puts the episodes into a folder beside it, which loads as it is read.")


def _check_extra() -> None:
    missing = [name for name in ("starlette", "uvicorn") if importlib.util.find_spec(name) is None]
    if missing:
        needed = f"the viewer's server needs {' and '.join(missing)}"
        raise MissingExtraError(f"{needed}. Run: {install_line('view')}. --export FILE.html needs neither")
