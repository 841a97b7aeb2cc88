"""The side of the process that grades: one template, started by the first call."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import pickle
import select
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Generator
from io import FileIO
from typing import Any, NamedTuple

from gem_core.errors import GradingError
from gem_core.grading.messages import FAILED, RESULT, UNKNOWN, Call, framed, receive, send

_BOOT = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from gem_core.grading.template import main; main()"
_END_SECONDS = 2.0
_DAY = 86_400
_MOST_MEMORY = 1 << 44
_SETTINGS = {
    # Threads of a library would be missing in the children.
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    # Memory in huge pages: with sympy loaded, a fork takes half the time.
    "PYTHONMALLOC": "malloc",
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
}


class Grade(NamedTuple):
    """What came of grading an answer."""

    value: Any
    """What the function returned; `None` where it failed."""
    error: str | None
    """Why it did not: the time limit, the memory limit, it died, or what it raised; `None` where all went well."""


class _TemplateDied(Exception):
    pass


class _Template:
    """A template process, and the way to it."""

    def __init__(self) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # Closed once no thread waits for it any more; `end` only says that it is over.
        weakref.finalize(self, self._control.close)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _BOOT, json.dumps(_search_path()), str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                env={**os.environ, **_SETTINGS},
            )

    def ask(self, call: Call, arguments: bytes) -> tuple[bytes, bytes]:
        """A reply's kind and text. Raises `_TemplateDied`."""
        with _pipe() as (theirs, mine), _pipe() as (replies, their_replies):
            # As much as any pipe holds goes first, so that the clock does not run while this thread waits for a core.
            message = framed(arguments)
            send(mine.fileno(), message[: select.PIPE_BUF])
            try:
                socket.send_fds(self._control, [call.encoded()], [theirs.fileno(), their_replies.fileno()])
            except OSError as error:
                raise _TemplateDied from error
            theirs.close()
            their_replies.close()
            with contextlib.suppress(BrokenPipeError):  # the reply says why
                send(mine.fileno(), message[select.PIPE_BUF :])
            try:
                reply = receive(replies.fileno())  # `mine` stays open until then: closing it ends the child
            except EOFError as error:
                raise _TemplateDied from error
        return bytes(reply[:1]), bytes(reply[1:])

    def end(self) -> None:
        """End the process and its children, and wait for it."""
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_RDWR)
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:  # it is importing
            self._process.kill()
            self._process.wait()

    def abandon(self) -> None:
        """In a fork of the process that has it: let go."""
        self._control.close()
        self._process.returncode = 0


@contextlib.contextmanager
def _pipe() -> Generator[tuple[FileIO, FileIO]]:
    """Its ends to read from and to write to."""
    read, write = os.pipe()
    with FileIO(read) as reader, FileIO(write, "w") as writer:
        yield reader, writer


class _Pool:
    """The template of this process, replaced where it died."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._template: _Template | None = None

    def ask(self, call: Call, arguments: bytes) -> tuple[bytes, bytes]:
        """As a template's, twice at most."""
        for _ in range(2):
            template = self._present()
            try:
                return template.ask(call, arguments)
            except _TemplateDied:
                self._discard(template)
        return FAILED, b"died: the process that grading processes are forked from, twice"

    def close(self) -> None:
        """End the template."""
        with self._lock:
            if self._template is not None:
                self._template.end()
                self._template = None

    def abandon(self) -> None:
        """In a fork: let go of what belongs to the parent."""
        if self._template is not None:
            self._template.abandon()

    def _present(self) -> _Template:
        with self._lock:
            if self._template is None:
                self._template = _Template()
            return self._template

    def _discard(self, template: _Template) -> None:
        with self._lock:
            if self._template is template:
                template.end()
                self._template = None


_pool = _Pool()


def grade(function: str, *arguments: Any, timeout: float = 2.0, memory: int = 1 << 30) -> Grade:
    """Call a function on an answer, in a process of its own that cannot do harm to this one.

    Several calls run at once, one per core; the others wait, and their clocks with them. Safe in threads, in worker
    processes, in Ray's actors and after `os.fork`; each process that grades has one template process, which ends with
    it.

    Args:
        function: `"package.module:name"`; imported once, in the template, before the clock starts. It returns plain
            data: `None`, a bool, number or string, or lists and dicts (with strings for keys) of them.
        arguments: plain data, pickled.
        timeout: seconds it may take, without those that it waits for a core.
        memory: bytes it may take, on top of what its module needed when it was imported.

    Raises:
        GradingError: no such function, or arguments that cannot be pickled. Whatever an answer does is `Grade.error`.
    """
    if not _is_limit(timeout, _DAY) or type(memory) is not int or not _is_limit(memory, _MOST_MEMORY):
        raise GradingError(
            f"a call needs seconds (up to {_DAY}) and a whole number of bytes (up to {_MOST_MEMORY}), not "
            f"timeout={timeout!r} and memory={memory!r}"
        )
    try:
        pickled = pickle.dumps(arguments, pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        raise GradingError(
            f"the arguments of {function} cannot be sent: {type(error).__name__}: {error}. Give it plain data."
        ) from error
    kind, text = _pool.ask(Call(function, timeout, memory, _search_path()), pickled)
    if kind == UNKNOWN:
        raise GradingError(
            f"the grading function {function!r} cannot be imported: {text.decode()}. "
            "Name it as 'package.module:name', in an installed module."
        )
    return _read(text) if kind == RESULT else Grade(None, text.decode())


def _is_limit(value: object, most: int) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= most


def close_pool() -> None:
    """End this process's template, if there is one; the next `grade` starts another. Calls under way fail or retry."""
    _pool.close()


def _read(text: bytes) -> Grade:
    # Whoever wrote it may be an answer, so that nothing is taken for granted.
    try:
        result: Any = json.loads(text)
        return Grade(None, str(result["error"])) if "error" in result else Grade(result["value"], None)
    except (ValueError, RecursionError, TypeError, LookupError) as error:
        return Grade(None, f"the result cannot be read: {type(error).__name__}")


def _search_path() -> list[str]:
    return [os.path.abspath(folder) for folder in sys.path]


def _after_fork() -> None:
    global _pool
    _pool.abandon()
    _pool = _Pool()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(close_pool)
