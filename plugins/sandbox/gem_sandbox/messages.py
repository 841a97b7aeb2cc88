"""What the three parties tell each other: the caller, its template, and a program's process.

    caller ── Start, and ends of four channels ──> template ── fork ──> process
    template ── HANDED, and the four channels ────────────────────────> process, which may have waited for a call
    caller ── KILL ──────────────> template                             each through a socket of the call
    caller <── Ended ───────────── template
    caller ── code and stdin, as files ───────────────────────────────> process, through another socket of the call
    caller <── Report ───────────────────────────────────────────────── process
    caller <── stdout, stderr ───────────────────────────────────────── process, through pipes

The program may have taken over its process by the time it reports: what it can say about is itself. How it ended, and
what it used, the template knows from the kernel, and no program can reach the template's sockets.
"""

from __future__ import annotations

import json
import struct
from typing import NamedTuple

MESSAGE_BYTES = 1 << 16
"""Room for any message."""
KILL = b"K"
HANDED = b"H"
"""From the template to a process: file descriptors of its call."""
READY = b"R"
"""A template's first word; any other says why it cannot serve."""


class Start(NamedTuple):
    """What the template is asked for."""

    session: bool
    """Whether there is more than one run to come."""
    cpu: int
    """Whole seconds."""
    memory: int
    """Bytes on top of the template's own."""
    processes: int
    disk: int
    """Bytes."""

    def encoded(self) -> bytes:
        """As one message."""
        return json.dumps(self).encode()

    @classmethod
    def decoded(cls, message: bytes) -> Start:
        """The other way."""
        return cls(*json.loads(message))


class Ended(NamedTuple):
    """How a process ended, as the kernel has it."""

    status: int
    """As of `os.waitpid`."""
    cpu: float
    """Seconds that it used, with its children."""

    def encoded(self) -> bytes:
        """As one message."""
        return _ENDED.pack(*self)

    @classmethod
    def decoded(cls, message: bytes) -> Ended:
        """The other way."""
        return cls(*_ENDED.unpack(message))


class Report(NamedTuple):
    """What a program's process says of itself."""

    kind: bytes
    """One of the two below, or whatever a program puts there."""
    detail: str = ""

    def encoded(self) -> bytes:
        """As one message."""
        return self.kind + self.detail.encode(errors="replace")[: MESSAGE_BYTES - 1]

    @classmethod
    def decoded(cls, message: bytes) -> Report:
        """The other way; anything can be read."""
        return cls(message[:1], message[1:].decode(errors="replace"))


FINISHED = b"F"
"""A run of a session; the exit code."""
OUT_OF_MEMORY = b"M"
"""The same, after a `MemoryError`."""
BROKEN = b"B"
"""Through the call's own socket, which a process has until its program starts: it cannot start; why."""

_ENDED = struct.Struct("<id")
