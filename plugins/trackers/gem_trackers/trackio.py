"""A source as a run of trackio."""

from __future__ import annotations

import contextlib
import contextvars
import importlib
import os
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from gem_core.episode import Episode, Source
from gem_trackers._conversations import facts, messages

trackio: Any = importlib.import_module("trackio")  # too large to install wherever types are checked

PROJECT = "gem-core"
"""Where TRACKIO_PROJECT names none."""


class TrackioTracker:
    """A run of its own, beside the one that the program may have. `TRACKIO_...` variables apply.

    Args:
        source: what is tracked. If it is resumed, the run with its name and id goes on.
    """

    def __init__(self, source: Source) -> None:
        # In an empty context, because `init` would end the program's own run.
        with _quiet_stdout():
            self._run: Any = contextvars.Context().run(_begin, source)

    def add_metrics(self, step: int, metrics: Mapping[str, float]) -> None:
        """A row."""
        self._run.log(dict(metrics), step=step)

    def add_samples(self, step: int, episodes: Sequence[Episode]) -> None:
        """Traces, whose status the dashboard shows."""
        traces: list[Any] = [
            trackio.Trace(messages(one), metadata={**facts(one), "status": "error" if one.error is not None else "ok"})
            for one in episodes
        ]
        self._run.log({"episodes": traces}, step=step)

    def close(self) -> None:
        """Wait until everything is sent or written."""
        with _quiet_stdout():
            self._run.finish()


def _begin(source: Source) -> Any:
    return trackio.init(
        project=os.environ.get("TRACKIO_PROJECT", PROJECT),
        name=f"{re.sub(r'[^A-Za-z0-9.-]+', '-', source.name)[:80]}-{source.id}",
        group=source.kind,
        config=source.settings,
        resume="allow" if source.resumed else "never",
        embed=False,
    )


def _quiet_stdout() -> contextlib.AbstractContextManager[Any]:
    """What trackio prints goes to stderr: stdout may be the result of a command."""
    return contextlib.redirect_stdout(sys.stderr)
