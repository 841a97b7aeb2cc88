"""Calls that may outlast their time: a thread each, or a task on an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, TypeVar

_T = TypeVar("_T")
_STOP_SECONDS = 5.0


class TimeLimit(Exception):
    """The call was given up."""


def within(seconds: float, function: Callable[[], _T]) -> _T:
    """Call a function in a thread of its own. One that does not return stays behind, and keeps no process alive.

    Raises:
        TimeLimit: it did not return in time.
    """
    outcome: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()

    def work() -> None:
        try:
            outcome.put((True, function()))
        except BaseException as error:
            outcome.put((False, error))

    threading.Thread(target=work, name="gem-tool", daemon=True).start()
    try:
        returned, value = outcome.get(timeout=seconds)
    except queue.Empty:
        raise TimeLimit from None
    if returned:
        return value
    raise value


class EventLoop:
    """An event loop in a thread of its own, for coroutines and the connections that they keep."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="gem-tools-loop", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, _T], seconds: float) -> _T:
        """Run a coroutine to its end.

        Raises:
            TimeLimit: it took longer, and was cancelled.
        """
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result(seconds)
        except FutureTimeout:
            if future.done():  # the coroutine's own error
                raise
            future.cancel()
            raise TimeLimit from None

    def stop(self) -> None:
        """Cancel what still runs, and end the thread."""
        with contextlib.suppress(TimeLimit):  # a task that refuses to end does so with the process
            self.run(_cancel_others(), _STOP_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_STOP_SECONDS)
        if not self._thread.is_alive():
            self._loop.close()


async def _cancel_others() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
