"""A limit on calls at the same time that holds across processes."""

from __future__ import annotations

import errno
import secrets
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from gem_core.errors import ToolError

_PAUSE = 0.005
"""Seconds between two looks for a place; a look takes about 15 microseconds per place that is taken."""
_PATIENCE = 0.25
"""Seconds after which a process that waits says so, and others let it go first."""


class Slots:
    """So many places; copies sent to other processes of the machine share them.

    A place is an address in the kernel's abstract socket name space: one process at a time has it, and loses it when it
    dies, so that nothing has to be cleaned up. Containers with networks of their own have places of their own.

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
        self._changed = threading.Condition()
        self._queue: deque[object] = deque()

    @contextmanager
    def taken(self) -> Generator[None]:
        """Wait for a place, and have it within the block. Threads of a process are served in their order.

        Raises:
            ToolError: this machine allows no such address.
        """
        try:
            with self._place():
                yield
        finally:
            with self._changed:
                self._changed.notify_all()

    def _place(self) -> socket.socket:
        me = object()
        with self._changed:
            self._queue.append(me)
            try:
                self._changed.wait_for(lambda: self._queue[0] is me)
                return self._found()
            finally:
                self._queue.remove(me)
                self._changed.notify_all()

    def _found(self) -> socket.socket:
        if self._others_wait():
            self._changed.wait(2 * _PAUSE)
        began, complaint = time.monotonic(), None
        try:
            while True:
                start = time.monotonic_ns()
                for number in range(self._count):
                    if place := self._bound((start + number) % self._count):
                        return place
                self._changed.wait(_PAUSE)
                if complaint is None and time.monotonic() - began > _PATIENCE:
                    complaint = self._bound("waits")
        finally:
            if complaint is not None:
                complaint.close()

    def _others_wait(self) -> bool:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
            return probe.connect_ex(self._address("waits")) == 0

    def _address(self, place: int | str) -> str:
        return f"\0gem-core-{self._name}-{place}"

    def _bound(self, which: int | str) -> socket.socket | None:
        place = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            place.bind(self._address(which))
        except OSError as error:
            place.close()
            if error.errno == errno.EADDRINUSE:
                return None
            raise ToolError(f"max_concurrent cannot be kept on this machine ({error}); leave it at None") from error
        return place

    def __getstate__(self) -> dict[str, Any]:
        return {"count": self._count, "name": self._name}

    def __setstate__(self, state: dict[str, Any]) -> None:
        Slots.__init__(self, state["count"])
        self._name = state["name"]
