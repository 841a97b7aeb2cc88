"""What the caller, the server and a grading process tell each other, beside what `gem_sandbox.messages` has.

    caller ── Call, with the call's socket, the arguments and a pipe ──> server ── fork ──> process
    caller <── Report(UNKNOWN) ─────────────────────────────────────── server
    caller <── JSON, through the pipe ───────────────────────────────────────────────────── process

The process may be in an answer's hands by the time it replies. Nobody unpickles what it says, and it has no way to the
server, nor to another call.
"""

from __future__ import annotations

import json
import struct
from typing import NamedTuple

HEADER = struct.Struct("<Q")
"""Length of the JSON that follows."""
MAX_RESULT = 1 << 20
"""Bytes of JSON that a function may return."""
UNKNOWN = b"U"
"""Kind of a report: the function could not be imported; why."""


class Call(NamedTuple):
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
    def decoded(cls, message: bytes) -> Call:
        """The other way."""
        return cls(*json.loads(message))
