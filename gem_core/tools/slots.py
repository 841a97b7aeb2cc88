"""A limit on calls at the same time that holds across processes."""

from __future__ import annotations

import secrets
import socket
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from gem_core.errors import ToolError

_SHORTEST, _LONGEST = 0.002, 0.05
"""Seconds between two looks for a free slot."""


class Slots:
    """So many places; copies sent to other processes of the machine share them.

    A place is an address in the kernel's abstract socket name space: one process at a time has it, and loses it when it
    dies, so that nothing has to be cleaned up.

    Raises:
        ToolError: below 1, or not on Linux, where there are no such addresses.
    """

    def __init__(self, count: int) -> None:
        if type(count) is not int or count < 1:
            raise ToolError(f"max_concurrent must be a whole number of calls, at least 1, or None, not {count!r}")
        if sys.platform != "linux":
            raise ToolError("max_concurrent needs Linux; leave it at None here")
        self._count = count
        self._name = secrets.token_hex(8)
        self._here = threading.Semaphore(count)

    @contextmanager
    def taken(self) -> Generator[None]:
        """Wait for a place, and have it within the block."""
        with self._here:
            address = self._wait()
            try:
                yield
            finally:
                address.close()

    def _wait(self) -> socket.socket:
        pause = _SHORTEST
        while True:
            for number in range(self._count):
                address = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
                try:
                    address.bind(f"\0gem-core-{self._name}-{number}")
                    return address
                except OSError:
                    address.close()
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST)

    def __getstate__(self) -> dict[str, Any]:
        return {"count": self._count, "name": self._name}

    def __setstate__(self, state: dict[str, Any]) -> None:
        Slots.__init__(self, state["count"])
        self._name = state["name"]
