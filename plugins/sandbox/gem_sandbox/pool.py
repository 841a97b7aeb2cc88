"""The caller's side of a template: one per settings and process, started by the first call."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import weakref
from collections.abc import Sequence
from typing import IO, NamedTuple

from gem_core.errors import SandboxError
from gem_sandbox import backends
from gem_sandbox.messages import MESSAGE_BYTES, READY, Start
from gem_sandbox.view import search_path, view

_END_SECONDS = 2.0
_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "USER": "sandbox",
    "PYTHONHASHSEED": "0",
    # A core for each program.
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "1"),
}
_TUNING = {
    # Memory in huge pages: with much of it, a fork takes half the time.
    "PYTHONMALLOC": "malloc",
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
}


class TemplateLost(Exception):
    """It ended, or was ended."""


class Settings(NamedTuple):
    """What makes one template different from another."""

    backend: str
    preload: tuple[str, ...]
    concurrency: int


class Template:
    """A template process, and the way to it. Raises `SandboxError` where it cannot start."""

    def __init__(self, settings: Settings) -> None:
        # Of the backend without namespaces: the template's, which takes it away unless it is killed.
        self._folder = tempfile.mkdtemp(prefix="gem-sandbox-") if settings.backend == "limits" else None
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # Closed once no thread uses it any more; `end` only says that it is over.
        self._close = weakref.finalize(self, self._control.close)
        with theirs, tempfile.TemporaryFile() as errors:
            self._process = subprocess.Popen(
                backends.command(settings.backend, theirs.fileno()),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                cwd="/",
                env={**_ENVIRONMENT, **_TUNING},
            )
            theirs.close()
            problem = self._greet(settings)
            if problem is not None:
                self.end()
                raise SandboxError(problem or _last_line(errors))

    def send(self, start: Start, files: Sequence[int]) -> None:
        """Ask for a process. Raises `TemplateLost`."""
        try:
            socket.send_fds(self._control, [start.encoded()], files)
        except OSError as error:
            raise TemplateLost from error

    def end(self) -> None:
        """End the process and all that it has started, and wait for it."""
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:  # it is importing
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    def abandon(self) -> None:
        """In a fork of the process that has it: let go."""
        self._close()
        self._process.returncode = 0

    def _greet(self, settings: Settings) -> str | None:
        """Send settings; why they cannot be met, empty where it died of it, `None` where all is well."""
        seen = view()
        message = {
            "backend": settings.backend,
            "preload": settings.preload,
            "path": search_path(),
            "folder": self._folder,
            "readable": [path for path in seen.of_this_machine if os.path.exists(path)],
        }
        try:
            self._control.send(json.dumps(message).encode())
            word = self._control.recv(MESSAGE_BYTES)
        except OSError:
            return ""
        if word == READY:
            return None
        problem = word.decode(errors="replace")
        return problem and f"a module cannot be preloaded: {problem}. Is it installed where programs see it?"


class Pool:
    """The template of these settings in this process, replaced where it died, and how many may use it at a time."""

    def __init__(self, settings: Settings) -> None:
        self.slots = threading.BoundedSemaphore(settings.concurrency)
        """To hold while a program runs."""
        self._settings = settings
        self._lock = threading.RLock()
        self._template: Template | None = None
        self._users: set[int] = set()

    def present(self, user: int) -> Template:
        """The template, which is there until all users have left. Raises `SandboxError`."""
        with self._lock:
            self._users.add(user)
            if self._template is None:
                self._template = Template(self._settings)
            return self._template

    def discard(self, template: Template) -> None:
        """Have another one next time."""
        with self._lock:
            if self._template is template:
                template.end()
                self._template = None

    def leave(self, user: int) -> None:
        """End the template after its last user."""
        with self._lock:
            self._users.discard(user)
            if not self._users:
                self._end()

    def close(self) -> None:
        """End the template, whoever uses it."""
        with self._lock:
            self._end()

    def abandon(self) -> None:
        """In a fork: let go of what belongs to the parent."""
        if self._template is not None:
            self._template.abandon()

    def _end(self) -> None:
        if self._template is not None:
            self._template.end()
            self._template = None


_pools: dict[Settings, Pool] = {}
_lock = threading.RLock()


def pool(settings: Settings) -> Pool:
    """This process's; it starts nothing yet."""
    with _lock:
        return _pools.setdefault(settings, Pool(settings))


def leave(settings: Settings, user: int) -> None:
    """Say that a user has no more calls to make."""
    if settings in _pools:
        _pools[settings].leave(user)


def _last_line(errors: IO[bytes]) -> str:
    errors.seek(0)
    lines = errors.read().decode(errors="replace").strip().splitlines()
    return f"its template died: {lines[-1]}" if lines else "its template died"


def _close() -> None:
    for one in _pools.values():
        one.close()


def _after_fork() -> None:
    global _lock
    for one in _pools.values():
        one.abandon()
    _pools.clear()
    _lock = threading.RLock()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_close)
