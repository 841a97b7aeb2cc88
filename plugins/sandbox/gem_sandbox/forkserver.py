"""The caller's side of a fork server: a process beside this one that forks a process for each call.

The sandbox runs programs through one, and `gem_grading` grading functions. `gem_sandbox.serving` is the other side.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import socket
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import IO, Any, TypeVar

from gem_core.waiting import turn_at
from gem_sandbox.messages import MESSAGE_BYTES, READY

_T = TypeVar("_T")
_END_SECONDS = 2.0
_ATTEMPTS = 4
"""Number of servers that may die under a call before it is given up."""
# A core for each process: threads of a library would be missing after the fork.
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1")
TUNING = {
    # Memory in huge pages: with much memory in use, a fork takes half the time.
    "PYTHONMALLOC": "malloc",
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
}
"""Environment variables for a server itself; what it forks has no use for them."""


class ServerLost(Exception):
    """The server ended, or was ended."""


class CannotStart(Exception):
    """A server could not start; the message says why."""


class ForkServer:
    """A server process, and the way to it.

    Args:
        command: what starts it, given the file descriptor of its end of the socket.
        environment: its environment variables.
        settings: its first message, plain data. Its answer is `READY`, or why it cannot serve.
        cwd: its working directory; the caller's by default.

    Raises:
        CannotStart: it says why it cannot serve, or it died; then the last line of its stderr.
    """

    def __init__(
        self,
        command: Callable[[int], Sequence[str]],
        environment: Mapping[str, str],
        settings: Mapping[str, Any],
        *,
        cwd: str | None = None,
    ) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # Closed once no thread uses it any more; `end` only shuts it down.
        self._close = weakref.finalize(self, self._control.close)
        with theirs, tempfile.TemporaryFile() as errors:
            self._process = subprocess.Popen(
                command(theirs.fileno()),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                cwd=cwd,
                env=environment,
            )
            theirs.close()  # or its death would not end what is read here
            problem = self._greet(settings)
            if problem is not None:
                self.end()
                raise CannotStart(problem or _last_line(errors))

    def send(self, request: bytes, files: Sequence[int]) -> None:
        """Ask for a process.

        Args:
            request: says what for.
            files: file descriptors: the socket of the call, and what else the process is given.

        Raises:
            ServerLost: the server has died.
            OSError: the system refuses to send file descriptors.
        """
        try:
            socket.send_fds(self._control, [request], files)
        except ConnectionError as error:
            raise ServerLost from error

    def end(self) -> None:
        """End the server and all that it has started, and wait for it."""
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:  # it is importing
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def abandon(self) -> None:
        """In a fork of the process that has it: let go."""
        self._close()
        self._process.returncode = 0

    def _greet(self, settings: Mapping[str, Any]) -> str | None:
        """Send the settings; why they cannot be met, empty where the server died of it, `None` where all is well."""
        try:
            self._control.send(json.dumps(settings).encode())
            word = self._control.recv(MESSAGE_BYTES)
        except OSError:
            return ""
        return None if word == READY else word.decode(errors="replace")


class Keeper:
    """The server of one kind in this process: started by the first call, replaced where it died.

    Args:
        start: starts one.
        concurrency: calls at one time; the others wait.
    """

    def __init__(self, start: Callable[[], ForkServer], concurrency: int) -> None:
        self._start = start
        self._turns = threading.BoundedSemaphore(concurrency)
        self._lock = threading.RLock()
        self._server: ForkServer | None = None
        self._users: set[int] = set()

    def converse(self, talk: Callable[[ForkServer], _T], user: int = 0) -> _T | None:
        """Wait for a turn, and hand the server to a function that may raise `ServerLost`; another server if it does.

        Args:
            talk: makes a call.
            user: on whose behalf; the server stays until all users have left.

        Returns:
            What `talk` returned; `None` where one server after the other was lost.

        Raises:
            CannotStart: see `ForkServer`.
        """
        with turn_at(self._turns):
            for _ in range(_ATTEMPTS):
                server = self._present(user)
                try:
                    return talk(server)
                except ServerLost:
                    self._discard(server)
        return None

    def leave(self, user: int) -> None:
        """Say that a user has no more calls to make; the last user's leaving ends the server."""
        with self._lock:
            self._users.discard(user)
            if not self._users:
                self.close()

    def close(self) -> None:
        """End the server, whoever uses it; the next call starts another."""
        with self._lock:
            if self._server is not None:
                self._server.end()
                self._server = None

    def abandon(self) -> None:
        """In a fork: let go of what belongs to the parent."""
        if self._server is not None:
            self._server.abandon()

    def _present(self, user: int) -> ForkServer:
        with self._lock:
            self._users.add(user)
            if self._server is None:
                self._server = self._start()
            return self._server

    def _discard(self, server: ForkServer) -> None:
        with self._lock:
            if self._server is server:
                self.close()


_keepers: dict[Hashable, Keeper] = {}
_lock = threading.RLock()


def keeper(key: Hashable, start: Callable[[], ForkServer], concurrency: int) -> Keeper:
    """This process's keeper of that key, made by the first call; it starts nothing yet. The others: see `Keeper`."""
    with _lock:
        return _keepers.setdefault(key, Keeper(start, concurrency))


def known_keeper(key: Hashable) -> Keeper | None:
    """This process's keeper of that key, if there is one."""
    return _keepers.get(key)


def _last_line(errors: IO[bytes]) -> str:
    errors.seek(0)
    lines = errors.read().decode(errors="replace").strip().splitlines()
    return f"its server died: {lines[-1]}" if lines else "its server died"


def _close_all() -> None:
    for one in _keepers.values():
        one.close()


def _after_fork() -> None:
    global _lock
    for one in _keepers.values():
        one.abandon()
    _keepers.clear()
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_close_all)
