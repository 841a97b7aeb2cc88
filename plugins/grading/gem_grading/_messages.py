"""What the caller, the server and a grading process tell each other, beside what `gem_sandbox.messages` has.

    caller ── GradingRequest, with the call's socket and ends of two pipes ──> server ── fork ──> process
    caller <── Report(UNKNOWN) ──────────────────────────────────── server
    caller ── the arguments, pickled, through one pipe ───────────────────────────────> process
    caller <── JSON through the other pipe ──────────────────────────────────────────── process

The process may be in an answer's hands by the time it replies. Nobody unpickles what it says, and it has no way to the
server, nor to another call.
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
UNKNOWN = b"U"
"""Kind of a report: the function could not be imported; why."""


class GradingRequest(NamedTuple):
    """The request for a grading process."""

    function: str
    """`package.module:name`."""
    cpu: int
    """Seconds of CPU time after which the kernel ends the process; the caller's clock comes first."""
    memory: int
    """Bytes on top of the server's own."""
    path: list[str]
    """`sys.path` of the caller."""

    def encoded(self) -> bytes:
        """As one message."""
        return json.dumps(self).encode()

    @classmethod
    def decoded(cls, message: bytes) -> GradingRequest:
        """The other way."""
        return cls(*json.loads(message))


def framed(message: bytes) -> memoryview:
    """A message and its length."""
    return memoryview(HEADER.pack(len(message)) + message)


def send(file: int, message: memoryview) -> None:
    """Write all of it. Raises `BrokenPipeError` where nobody reads any more."""
    while message:
        message = message[os.write(file, message) :]


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
