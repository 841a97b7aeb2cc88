"""Ctrl-C at a moment when it does no harm."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any


@contextmanager
def uninterrupted() -> Generator[None]:
    """Hold Ctrl-C back until the block is over, so that what it keeps account of is never half done.

    Only the main thread is ever interrupted; elsewhere this does nothing.
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
