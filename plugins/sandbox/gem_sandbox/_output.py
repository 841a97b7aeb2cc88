"""What a program writes, in no more memory than a limit."""

from __future__ import annotations

import array
import fcntl
import os
import termios

CHUNK = 1 << 16


class Output:
    """Reads a pipe, and keeps the first and the last of it.

    Args:
        file: file descriptor to read from; not closed here.
        limit: bytes to keep.
    """

    def __init__(self, file: int, limit: int) -> None:
        self.file = file
        self._limit = limit
        self._half = limit - limit // 2
        self._first = bytearray()
        self._last = bytearray()
        self._total = 0

    @property
    def truncated(self) -> bool:
        """Whether something was left out."""
        return self._total > self._limit

    def read(self) -> int | None:
        """What there is, or a part of it; how many bytes that was, none at the end, `None` where it was taken back."""
        try:
            chunk = os.read(self.file, CHUNK)
        except BlockingIOError:
            return None
        self._keep(chunk)
        return len(chunk)

    def read_rest(self) -> None:
        """What there is by now. What is written meanwhile is not read, or it might never end."""
        waiting = array.array("i", [0])
        fcntl.ioctl(self.file, termios.FIONREAD, waiting)
        left = waiting[0]
        while left > 0:
            try:
                chunk = os.read(self.file, min(left, CHUNK))
            except BlockingIOError:
                return
            self._keep(chunk)
            left -= len(chunk) or left

    def take(self) -> str:
        """All that was kept, as text; begins anew."""
        first, last = bytes(self._first), bytes(self._last)
        if self.truncated:
            last = last[len(last) - (self._limit - self._half) :]
            first += f"\n[... {self._total - self._limit} bytes left out ...]\n".encode()
        self._first.clear()
        self._last.clear()
        self._total = 0
        return (first + last).decode(errors="replace")

    def _keep(self, chunk: bytes) -> None:
        self._total += len(chunk)
        room = self._half - len(self._first)
        self._first += chunk[:room]
        self._last += chunk[room:]
        most = self._limit - self._half
        if len(self._last) > most + CHUNK:
            del self._last[: len(self._last) - most]
