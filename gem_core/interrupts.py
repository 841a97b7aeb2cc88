"""Delaying Ctrl-C until it is safe."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any


@contextmanager
def uninterrupted() -> Generator[None]:
    """Delay Ctrl-C until the end of the block, so that the state that the block updates stays consistent.

    Python interrupts only the main thread; in other threads this function does nothing.
    """
    before: Any = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    held: list[Any] = []

    def hold(*arguments: Any) -> None:
        held.append(arguments)

    signal.signal(signal.SIGINT, hold)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if held:
            before(*held[0])
