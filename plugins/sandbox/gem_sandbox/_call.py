"""One conversation with a fork server and a process of its: what the caller sends, reads and waits for."""

from __future__ import annotations

import array
import contextlib
import fcntl
import math
import os
import select
import socket
import termios
import time
import weakref
from typing import NamedTuple

from gem_sandbox._limits import Limits
from gem_sandbox._output import CHUNK, Output
from gem_sandbox._source import reread
from gem_sandbox.forkserver import ForkServer, ServerLost
from gem_sandbox.messages import ASK, BROKEN, KILL, MESSAGE_BYTES, Age, Ended, Report, Start

_KILL_SECONDS = 60.0
"""A busy machine is not taken for a dead server, with which all sessions end."""
_GATHER_MILLISECONDS = 2
_MIN_SECONDS = 0.01
"""Between two questions for a process's age."""


class NotStarted(OSError):
    """The server is there, but the system refuses it a process for the call; the message says why."""


class Turn(NamedTuple):
    """What came of waiting for a process."""

    seconds: float
    ended: Ended | None = None
    """How it ended; `None` where the session continues."""
    report: Report | None = None
    """What the process said of itself."""
    late: bool = False
    """Whether its time was up."""


class RunningProcess:
    """A process that a server has started, and all ways to it. They are closed once nobody has this object any more:
    `close` in one thread takes no file descriptor away from another one that waits.

    Args:
        server: starts it.
        limits: it has.
        session: whether it reports after each run, and continues.
        shell: whether it is a shell's; then a session.
        guarded: of a shell: see `Start`.

    Raises:
        ServerLost: by all methods but `close`: the server has died.
    """

    def __init__(
        self, server: ForkServer, limits: Limits, *, session: bool, shell: bool = False, guarded: bool = False
    ) -> None:
        self._wall = limits.wall
        self._session = session
        self._left: float | None = None
        """Seconds that the process is still to have, by the server's last word."""
        with contextlib.ExitStack() as mine, contextlib.ExitStack() as theirs:
            self._call, its_call = _sockets(mine, theirs)
            self._channel, its_channel = _sockets(mine, theirs)
            stdout, its_stdout = _pipe(mine, theirs)
            stderr, its_stderr = _pipe(mine, theirs)
            start = Start(session, limits.cpu_seconds, limits.memory, limits.processes, limits.disk, shell, guarded)
            server.send(start.encoded(), [its_call.fileno(), its_channel.fileno(), its_stdout, its_stderr])
            # Also if nobody closes it; but a fork of this process has no right to.
            weakref.finalize(self, _end, os.getpid(), self._call, mine.pop_all()).atexit = False
            self._owner = os.getpid()
        self.stdout, self.stderr = Output(stdout, limits.output), Output(stderr, limits.output)
        ends = (self._call.fileno(), *[self._channel.fileno()] * session)
        self._poll, self._ends = _poll(stdout, stderr, *ends), _poll(*ends)

    def give(self, code: int, stdin: int) -> bool:
        """Send a program: file descriptors of its code and its stdin, which remain the caller's.

        Its stdin begins at the beginning, also where another process has read it before.

        Returns:
            Whether there is a process to run it.

        Raises:
            OSError: the system refuses to send file descriptors.
        """
        with reread(stdin) as stdin:
            return self.send(code, stdin)

    def send(self, *files: int) -> bool:
        """As `give`, with the file descriptors as they are."""
        sent = not _unread(self._channel)  # or what a process never takes would pile up until nobody can send
        try:
            if sent:
                socket.send_fds(self._channel, [b"P"], files)
        except ConnectionError:
            sent = False
        if not select.select([self._call], [], [], 0)[0]:
            return sent
        if not _received(self._call, socket.MSG_PEEK):
            raise ServerLost
        return False

    def wait(self, seconds: float | None = None) -> Turn:
        """Read what it writes until it has ended, or reported; end it when its time is up. Raises `NotStarted`.

        Args:
            seconds: in a session: this time, in place of the limit.

        A busy machine makes no program late: the server knows how long it had no core. Not so in a session, whose
        process the server has known for longer than this run.
        """
        begin = time.monotonic()
        deadline, late = begin + (self._wall if seconds is None else seconds), self._session
        asked = killed = False
        while True:
            left = max(0.0, deadline - time.monotonic())
            ready = dict(self._poll.poll(math.ceil(left * 1000)))
            # What has ended in time is not late, however late this thread is.
            if turn := self._heard(ready):
                return turn._replace(seconds=time.monotonic() - begin, late=killed)
            self._read(ready)
            if self._left is not None:
                late, asked = self._left <= 0, False
                deadline = time.monotonic() + (0.0 if late else max(self._left, _MIN_SECONDS))
                self._left = None
            if time.monotonic() >= deadline:
                if killed or asked:
                    raise ServerLost  # it answers at once, if it can
                killed, asked, deadline = late, not late, time.monotonic() + _KILL_SECONDS
                _send(self._call, KILL if late else ASK)

    def close(self) -> None:
        """End the process, if it has not ended."""
        if self._owner == os.getpid():
            _send(self._call, KILL)

    def _read(self, ready: dict[int, int]) -> None:
        """Read what it has written. Where that is little, let more come together before the next look: a program that
        writes one byte after the other would keep this process busy, too."""
        sizes = {output.file: output.read() for output in (self.stdout, self.stderr) if output.file in ready}
        for file, size in sizes.items():
            if size == 0:
                self._poll.unregister(file)
        if any(size is None or 0 < size < CHUNK for size in sizes.values()):
            self._ends.poll(_GATHER_MILLISECONDS)

    def _heard(self, ready: dict[int, int]) -> Turn | None:
        if self._call.fileno() in ready:
            message = _received(self._call)
            if not message:
                raise ServerLost
            if message[:1] == ASK:
                self._left = self._wall - Age.decoded(message).seconds
                return None
            if message[:1] == BROKEN:
                raise NotStarted(Report.decoded(message).detail)
            ended = Ended.decoded(message)
        elif self._channel.fileno() in ready:
            ended = None
        else:
            return None
        report = Report.decoded(_received(self._channel))
        if not ended and not report.kind:  # it has closed its end, and is yet to end itself
            for poll in (self._poll, self._ends):
                poll.unregister(self._channel)
            return None
        self.stdout.read_rest()
        self.stderr.read_rest()
        return Turn(0.0, ended, report)


def _end(owner: int, call: socket.socket, files: contextlib.ExitStack) -> None:
    if owner == os.getpid():
        _send(call, KILL)
    files.close()


def _send(call: socket.socket, word: bytes) -> None:
    with contextlib.suppress(OSError):
        call.send(word, socket.MSG_DONTWAIT)


def _received(channel: socket.socket, flags: int = 0) -> bytes:
    try:
        return channel.recv(MESSAGE_BYTES, socket.MSG_DONTWAIT | flags)
    except OSError:
        return b""


def _unread(channel: socket.socket) -> int:
    """Bytes that were sent and that nobody has taken."""
    waiting = array.array("i", [0])
    fcntl.ioctl(channel, termios.TIOCOUTQ, waiting)
    return waiting[0]


def _poll(*files: int) -> select.poll:
    poll = select.poll()
    for file in files:
        poll.register(file, select.POLLIN)
    return poll


def _sockets(mine: contextlib.ExitStack, theirs: contextlib.ExitStack) -> tuple[socket.socket, socket.socket]:
    ours, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    return mine.enter_context(ours), theirs.enter_context(other)


def _pipe(mine: contextlib.ExitStack, theirs: contextlib.ExitStack) -> tuple[int, int]:
    """Its ends to read from and to write to."""
    read, write = os.pipe()
    os.set_blocking(read, False)  # what poll saw, the program may have taken back by opening the pipe to read from
    mine.callback(os.close, read)
    theirs.callback(os.close, write)
    os.fchmod(write, 0o666)  # programs are another user, and may open /dev/stdout
    return read, write
