"""What the three parties tell each other: the process that grades, its template, and the template's children.

    caller ── Call, and ends of two pipes ──> template ── fork ──> child
    caller ── the arguments, pickled, through one pipe ──────────> child
    caller <── a reply through the other ── template <── JSON ──── child

The child may be in an answer's hands by the time it replies: nobody unpickles what it says, and the way to the caller
is the template's alone.
"""

from __future__ import annotations

import json
import os
import struct
from typing import NamedTuple, NoReturn

HEADER = struct.Struct("<Q")
"""Length of what follows."""
MAX_RESULT = 1 << 20
"""Bytes of JSON that a function may return."""
CALL_BYTES = 1 << 18
"""Room for a `Call`; the search path is most of it."""

RESULT, FAILED, UNKNOWN = b"R", b"F", b"U"
"""First byte of a template's reply: a child's JSON; why there is none; why the function could not be imported."""


class Call(NamedTuple):
    """What the template has to know of a call."""

    function: str
    """`package.module:name`."""
    timeout: float
    """Seconds."""
    memory: int
    """Bytes on top of the template's own."""
    path: list[str]
    """`sys.path` of the caller."""

    def encoded(self) -> bytes:
        """As one message."""
        return json.dumps(self).encode()

    @classmethod
    def decoded(cls, message: bytes) -> Call:
        """The other way."""
        return cls(*json.loads(message))


def framed(message: bytes) -> memoryview:
    """A message and its length."""
    return memoryview(HEADER.pack(len(message)) + message)


def send(file: int, message: bytes | memoryview) -> None:
    """Write all of it. Raises `BrokenPipeError` where nobody reads any more."""
    rest = memoryview(message)
    while rest:
        rest = rest[os.write(file, rest) :]


def receive(file: int) -> bytearray:
    """Read a framed message. Raises `EOFError` where the writer is gone."""
    size: int = HEADER.unpack(os.read(file, HEADER.size) or _end())[0]
    data = bytearray(size)
    rest = memoryview(data)
    while rest:
        rest = rest[os.readv(file, [rest]) or _end() :]
    return data


def _end() -> NoReturn:
    raise EOFError
