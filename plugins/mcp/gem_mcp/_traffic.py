"""What a server may send: limits that hold before any of it becomes a Python object.

The SDK reads messages in this process, under Python's lock. So a message is small enough to be read in a tenth of a
second, and a server is stopped that talks without being asked.
"""

from __future__ import annotations

import time

import msgspec

from gem_core.errors import ToolError

MAX_BYTES = 8 << 20
"""Limit on one message of a server. A model is shown a few thousand characters of it."""
MAX_VALUES = 50_000
"""Limit on the numbers, texts, lists and mappings in one message."""
MAX_UNASKED, UNASKED_PER_SECOND = 2_000, 100
"""Messages that answer no request of ours: how many may come at once, and how many each second."""
MAX_UNASKED_BYTES, UNASKED_BYTES_PER_SECOND = 8 << 20, 256 << 10
"""The same in bytes."""


class _Head(msgspec.Struct):
    id: int | float | str | None = None
    method: str | None = None


class Traffic:
    """The messages of one session."""

    def __init__(self) -> None:
        self.bytes = 0
        """That have arrived."""
        self._awaited: set[int | float | str] = set()
        self._messages = _Allowance(MAX_UNASKED, UNASKED_PER_SECOND)
        self._unasked_bytes = _Allowance(MAX_UNASKED_BYTES, UNASKED_BYTES_PER_SECOND)

    def leaves(self, message: bytes) -> None:
        """Note a message to the server; a request may be answered once."""
        head = _head(message)
        if head is not None and head.method is not None and head.id is not None:
            self._awaited.add(head.id)

    def arrives(self, message: bytes, beside: int = 0) -> None:
        """Check a message of the server, or whatever it sent in place of one.

        Args:
            message: what the server sent.
            beside: bytes that came with the message and are no part of it.

        Raises:
            ToolError: it is too large, or one too many that nobody asked for.
        """
        self.bytes += len(message) + beside
        if len(message) > MAX_BYTES:
            raise too_long()
        if _has_many_values(message):
            raise ToolError(f"sent a message of more than {MAX_VALUES:,} values")
        head = _head(message)
        answered = None if head is None or head.method is not None else head.id
        awaited = answered is not None and answered in self._awaited
        if answered is not None and awaited:
            self._awaited.remove(answered)
        unasked = (0, beside) if awaited else (1, len(message) + beside)
        if not (self._messages.takes(unasked[0]) and self._unasked_bytes.takes(unasked[1])):
            raise ToolError(
                f"sent too much that nobody asked for: more than {MAX_UNASKED:,} messages or "
                f"{MAX_UNASKED_BYTES >> 20} MiB at once, or {UNASKED_PER_SECOND} messages or "
                f"{UNASKED_BYTES_PER_SECOND >> 10} KiB a second"
            )


def too_long() -> ToolError:
    """The error for a message of which only the beginning was read."""
    return ToolError(f"sent a message of more than {MAX_BYTES >> 20} MiB")


class _Allowance:
    """So much at once, and so much more each second."""

    def __init__(self, most: float, per_second: float) -> None:
        self._most, self._per_second = most, per_second
        self._left, self._at = most, time.monotonic()

    def takes(self, amount: float) -> bool:
        now = time.monotonic()
        self._left = min(self._most, self._left + (now - self._at) * self._per_second) - amount
        self._at = now
        return self._left >= 0


def _head(message: bytes) -> _Head | None:
    try:
        return msgspec.json.decode(message, type=_Head)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return None


def _has_many_values(message: bytes) -> bool:
    """Each value but the first of a container follows a comma, so the signs outside of texts count them."""
    if _signs(message) <= MAX_VALUES:
        return False
    bare = message.replace(b"\\\\", b"").replace(b'\\"', b"")
    if bare.count(b'"') > 4 * MAX_VALUES:  # a key and a value have two each
        return True
    return sum(map(_signs, bare.split(b'"')[::2])) > MAX_VALUES


def _signs(text: bytes) -> int:
    return text.count(b",") + text.count(b"[") + text.count(b"{")
