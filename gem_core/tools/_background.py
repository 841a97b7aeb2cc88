"""Calls that may outlast their time: a thread each, or a task on an event loop."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, TypeVar

from gem_core.errors import ToolError
from gem_core.interrupts import uninterrupted

_T = TypeVar("_T")
_STOP_SECONDS = 5.0


class TimeLimit(Exception):
    """The call was given up."""


def within(seconds: float, function: Callable[[], _T]) -> _T:
    """Call a function in a thread of its own. One that does not return stays behind, and keeps no process alive.

    Raises:
        TimeLimit: it did not return in time.
        ToolError: it raised what would end this thread, such as `SystemExit`.
    """
    outcome: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()

    def work() -> None:
        try:
            outcome.put((True, function()))
        except BaseException as error:
            outcome.put((False, error))

    try:
        threading.Thread(target=work, name="gem-tool", daemon=True).start()
    except RuntimeError:  # at exit no thread can be started any more
        return function()
    try:
        came = outcome.get(timeout=seconds)
    except queue.Empty:
        raise TimeLimit from None
    return _value(*came)


class EventLoop:
    """An event loop in a thread of its own, for coroutines and the connections that they keep."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._ending = False
        self._thread = threading.Thread(target=self._serve, name="gem-tools-loop", daemon=True)
        self._thread.start()

    def run(self, awaitable: Awaitable[_T], seconds: float) -> _T:
        """Run a coroutine to its end. Where the caller is interrupted, it is cancelled.

        Raises:
            TimeLimit: it took longer, and was cancelled.
            ToolError: it raised what would end this thread, or was cancelled by others.
        """
        future: Future[tuple[bool, Any]] | None = None
        try:
            with uninterrupted():  # Ctrl-C between the start and the wait would leave it running
                future = asyncio.run_coroutine_threadsafe(_outcome(awaitable), self._loop)
            outcome = future.result(seconds)
        except FutureTimeout:
            raise TimeLimit from None
        except CancelledError:
            raise ToolError("the call was cancelled") from None
        finally:
            if future is not None:
                future.cancel()
        return _value(*outcome)

    def stop(self) -> None:
        """Cancel what still runs, and end the thread."""
        with contextlib.suppress(Exception):  # a task that refuses to end does so with the process
            self.run(_cancel_others(), _STOP_SECONDS)
        self._ending = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_STOP_SECONDS)
        if not self._thread.is_alive():
            self._loop.close()

    def _serve(self) -> None:
        while not self._ending:
            # What ends a thread comes out here, if a task that a tool started raises it; the others go on.
            with contextlib.suppress(BaseException):
                self._loop.run_forever()


async def _outcome(awaitable: Awaitable[_T]) -> tuple[bool, Any]:
    try:
        return True, await awaitable
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # SystemExit would end the event loop
        return False, error


def _value(returned: bool, value: Any) -> Any:
    if returned:
        return value
    try:
        if isinstance(value, Exception):
            raise value
        raise ToolError(f"{type(value).__name__}: {value}") from value
    finally:
        del value  # otherwise it keeps itself alive, and with it whatever the call had in hand


async def _cancel_others() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
