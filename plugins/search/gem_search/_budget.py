"""Memory that the requests of a server share."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Generator


class OverBudget(Exception):
    """There is not so much left."""


class ByteBudget:
    """Bytes that requests take before they use memory. Threads may share it.

    Args:
        total: of all requests together.
    """

    def __init__(self, total: int) -> None:
        self._left = total
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def share(self) -> Generator[Callable[[int], None]]:
        """For the length of a block, a function that takes a number of bytes, or raises `OverBudget`."""
        taken = 0

        def take(count: int) -> None:
            nonlocal taken
            with self._lock:
                if count > self._left:
                    raise OverBudget
                self._left -= count
                taken += count

        try:
            yield take
        finally:
            with self._lock:
                self._left += taken
