"""One line that says how far an evaluation is."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

from gem_evaluation._finished import by_task, rows_of
from gem_evaluation._models import Model
from gem_evaluation._report import percent, share
from gem_evaluation._statistics import success_rate
from gem_evaluation._store import Store
from gem_evaluation.results import is_planned

SECONDS = 0.5
"""Between two looks, in a terminal."""
LINE_SECONDS = 30.0
"""Between two lines, in a file."""


class Progress:
    """Says how far an evaluation is.

    Args:
        store, model: of the evaluation.
        planned: tasks and repeats of each label.
    """

    def __init__(self, store: Store, model: Model, planned: Mapping[str, tuple[int, int]]) -> None:
        self._store = store
        self._model = model
        self._planned = planned
        self._total = sum(tasks * repeats for tasks, repeats in planned.values())
        rows = rows_of(store.finished.tables(planned).values())
        self._began, self._before = time.monotonic(), len(rows)
        self._requests_before = int(rows["requests"].sum())

    def line(self) -> str:
        """Episodes, success, tokens, cost, the endpoint's limits, and the time left."""
        tables = self._store.finished.tables(self._planned).values()
        rows = rows_of(tables)
        done, failed = len(rows), sum(is_planned(key, self._planned) for key in self._store.failures)
        parts = [f"{done} of {self._total} episodes"]
        if failed:
            parts.append(f"{failed} failed")
        if done:
            parts.append(f"success {percent(success_rate(by_task(tables, 'success')))}")
            turns = max(1, int(rows["turns"].sum()))
            shares = {"cut off": rows["truncated"].sum() / turns, "invalid": rows["invalid"].sum() / turns}
            parts += [f"{name} {share(part)}" for name, part in shares.items() if part]
        if tokens := int(rows["prompt_tokens"].sum() + rows["completion_tokens"].sum()):
            parts.append(f"{tokens / 1e6:.2f}M tokens")
        if cost := float(rows["cost"].sum()):
            parts.append(f"${cost:.2f}")
        seconds = time.monotonic() - self._began
        if played := done - self._before:
            requests = int(rows["requests"].sum()) - self._requests_before
            parts.append(f"{played / seconds:.1f} episodes/s, {requests / seconds:.1f} requests/s")
            parts.append(f"{_duration((self._total - done - failed) * seconds / played)} left")
        if status := self._model.status():
            parts.append(status)
        return ", ".join(parts)

    @asynccontextmanager
    async def shown(self) -> AsyncGenerator[None]:
        """Show it on stderr meanwhile."""
        showing = asyncio.ensure_future(self._show_live() if sys.stderr.isatty() else self._show_lines())
        try:
            yield
        finally:
            showing.cancel()
            await asyncio.gather(showing, return_exceptions=True)

    async def _show_live(self) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        with Live(console=Console(stderr=True), auto_refresh=False, transient=True) as live:
            while True:
                began = time.monotonic()
                live.update(Text(self.line()), refresh=True)
                # A line about many episodes takes time, in which no request is sent.
                await asyncio.sleep(max(SECONDS, 20 * (time.monotonic() - began)))

    async def _show_lines(self) -> None:
        while True:
            await asyncio.sleep(LINE_SECONDS)
            print(self.line(), file=sys.stderr, flush=True)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
