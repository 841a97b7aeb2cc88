"""What the three parties tell each other: the caller, its fork server, and the process of a call.

    caller ── a request, the call's socket, files ──> server ── fork ──> process
    server ── HANDED, the call's socket, files ────────────────────────> process, which may have waited for a call
    caller ── ASK, KILL ──────────> server                               through the call's socket
    caller <── Age, Ended, Report ─ server

A program's request is a `Start`, and its files are a channel, stdout and stderr:

    caller ── code and stdin, as files ────────────────────────────────> process, through the channel
    caller <── Report ────────────────────────────────────────────────── process, through the channel
    caller <── stdout, stderr ────────────────────────────────────────── process, through pipes

A shell's requests and answers are JSON: `gem_sandbox._console`.

A program may have taken over its process by the time the process reports: what it can lie about is itself. How the
process ended, and what it used, the server knows from the kernel, and no program can reach the server's sockets.
"""

from __future__ import annotations

import json
import struct
from typing import NamedTuple

MESSAGE_BYTES = 1 << 16
"""Room for any message but a request."""
REQUEST_BYTES = 1 << 18
"""Room for a request; `gem_grading` sends the search path in it."""
ASK = b"A"
"""How long has the process had its call?"""
KILL = b"K"
HANDED = b"H"
"""From the server to a process: file descriptors of its call."""
READY = b"R"
"""A server's first word; any other says why it cannot serve."""


class Start(NamedTuple):
    """The request for a program's process."""

    session: bool
    """Whether there is more than one run to come."""
    cpu: int
    """Whole seconds."""
    memory: int
    """Bytes on top of the server's own."""
    processes: int
    disk: int
    """Bytes."""
    shell: bool = False
    """Whether it is a shell's: see `gem_sandbox._console`."""
    guarded: bool = False
    """Of a shell: whether its processes cannot look into its interpreters, see `gem_sandbox._interpreters`."""

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
    too_large: bool = False
    """Whether it was ended because all its processes together used too much memory."""

    def encoded(self) -> bytes:
        """As one message."""
        return _ENDED.pack(*self)

    @classmethod
    def decoded(cls, message: bytes) -> Ended:
        """The other way."""
        return cls(*_ENDED.unpack(message))


class Age(NamedTuple):
    """Answers `ASK`."""

    seconds: float
    """Since the process has its call, without the time that it was ready to run and had no core."""
    cpu: float
    """Seconds of CPU time that it has used, in all its threads."""

    def encoded(self) -> bytes:
        """As one message. Its first byte begins no `Ended`, whose first holds the number of a signal."""
        return ASK + _AGE.pack(*self)

    @classmethod
    def decoded(cls, message: bytes) -> Age:
        """The other way."""
        return cls(*_AGE.unpack(message[1:]))


class Report(NamedTuple):
    """What a program's process says of itself, or why there is no process."""

    kind: bytes
    """One of those below, or whatever a program puts there."""
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
"""Through the call's own socket: the process cannot start; why. From the server, or from the process, which has that
socket until its program starts."""

_ENDED = struct.Struct("<id?")
_AGE = struct.Struct("<dd")
