"""Time that a call waits for its turn at something shared, which its time limit does not count."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import BoundedSemaphore
from typing import Protocol

from gem_core.errors import EnvError

MAX_SECONDS = 3600.0
"""How long a call waits for its turn. No time limit counts it, so a turn that is kept for ever would hold up all."""


class Clock(Protocol):
    """Measures the time of the call that this thread carries out."""

    def pause(self) -> None:
        """The call waits for its turn."""
        ...

    def resume(self) -> None:
        """It has its turn."""
        ...


_clock: ContextVar[Clock | None] = ContextVar("gem_core_clock", default=None)


def set_call_clock(clock: Clock) -> None:
    """Have this clock measure the calls of this thread."""
    _clock.set(clock)


@contextmanager
def waiting() -> Generator[None]:
    """The block waits for others: for a place in a sandbox, or for a connection.

    A vector's time limit does not count it, so that an environment does not fail because its neighbors are busy.
    Outside of an environment's call, this does nothing.
    """
    clock = _clock.get()
    if clock is None:
        yield
        return
    token = _clock.set(None)  # a wait within a wait
    clock.pause()
    try:
        yield
    finally:
        clock.resume()
        _clock.reset(token)


@contextmanager
def turn_at(shared: BoundedSemaphore) -> Generator[None]:
    """Wait for a turn at something shared, take it, and give it back after the block.

    Raises:
        EnvError: there was none within `MAX_SECONDS`.
    """
    with waiting():
        taken = shared.acquire(timeout=MAX_SECONDS)
    if not taken:
        raise EnvError(f"waited {MAX_SECONDS:g} seconds for a turn at something that is shared, and got none")
    try:
        yield
    finally:
        shared.release()
