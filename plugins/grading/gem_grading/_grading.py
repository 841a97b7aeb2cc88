"""The side of the process that grades: `grade`, and a call's conversation with the server."""

from __future__ import annotations

import contextlib
import functools
import json
import math
import os
import pickle
import select
import signal
import socket
import sys
import time
from typing import Any, NamedTuple

from gem_core.errors import EnvError
from gem_grading._messages import HEADER, MAX_RESULT, UNKNOWN, GradingRequest, framed, send
from gem_sandbox.forkserver import THREADS, CannotStart, ForkServer, Keeper, ServerLost, keeper, known_keeper
from gem_sandbox.messages import ASK, BROKEN, MESSAGE_BYTES, Age, Ended, Report

_BOOT = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from gem_grading._server import main; main()"
_KEY = __name__
_DAY = 86_400
_STALLS = 10
"""How many times its CPU time a call may take in all, beside what it waits for a core."""
_MAX_MEMORY = 1 << 44
_CHUNK = 1 << 16
_MIN_PAUSE = 0.05
"""Seconds between two looks at the clock of a process, which may wait with little of its time left."""
_NAMESPACES = True
"""Whether the server makes use of them where there are any; tests try without."""


class GradingError(EnvError):
    """A grading function cannot be imported, or be sent its arguments; what an answer does is never an error."""


class Grade(NamedTuple):
    """What came of grading an answer."""

    value: Any
    """What the function returned; `None` where it failed."""
    error: str | None
    """Why it did not: the time limit, the memory limit, it died, or what it raised; `None` where all went well."""


class Evaluated(NamedTuple):
    """An argument of `grade` that code of an answer's may compute: what a function returns, in a process before.

    That process has these arguments and nothing else. So it knows of no accepted answer and has no say in the grade:
    the function that grades sees plain data, in a process in which none of an answer's code has run.
    """

    function: str
    """As of `grade`."""
    arguments: tuple[Any, ...]
    """What it is called with; no accepted answer belongs here."""


def grade(function: str, *arguments: Any, timeout: float = 2.0, memory: int = 1 << 30) -> Grade:
    """Call a function on an answer, in a process of its own that cannot do harm to this one.

    The process can compute, import what is installed, and nothing else (`gem_grading.confinement`). Where the function
    evaluates an answer as code, that code decides what the function returns: give it to `Evaluated`.

    Several calls run at once, one per core; the others wait, and their clocks with them. Safe in threads, in worker
    processes, in Ray's actors and after `os.fork`; each process that grades has one server process, which ends with
    it.

    Args:
        function: `"package.module:name"`; imported once, in the server, before the clock starts. It returns plain
            data: `None`, a bool, number or string, or lists and dicts (with strings for keys) of them.
        arguments: plain data, pickled; or `Evaluated`, which is computed first. Where that fails, so does the grade.
        timeout: seconds of CPU time it may take; each `Evaluated` has as many. A process that waits, for memory that
            the machine reads from a disk or by its own doing, is ended after ten times as many.
        memory: bytes it may take, on top of what its module needed when it was imported.

    Raises:
        GradingError: no such function, arguments that cannot be pickled, or no process to grade in. Whatever an answer
            does is `Grade.error`.
    """
    if not _is_limit(timeout, _DAY) or type(memory) is not int or not _is_limit(memory, _MAX_MEMORY):
        raise GradingError(
            f"a call needs seconds (up to {_DAY}) and a whole number of bytes (up to {_MAX_MEMORY}), not "
            f"timeout={timeout!r} and memory={memory!r}"
        )
    given: list[Any] = []
    for argument in arguments:
        if isinstance(argument, Evaluated):
            computed = grade(argument.function, *argument.arguments, timeout=timeout, memory=memory)
            if computed.error is not None:
                return computed
            argument = computed.value
        given.append(argument)
    return _graded(function, tuple(given), timeout, memory)


def close_server() -> None:
    """End this process's server, if there is one; the next `grade` starts another. Calls under way fail or retry."""
    if known := known_keeper(_KEY):
        known.close()


def _graded(function: str, arguments: tuple[Any, ...], timeout: float, memory: int) -> Grade:
    try:
        pickled = pickle.dumps(arguments, pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        raise GradingError(
            f"the arguments of {function} cannot be sent: {type(error).__name__}: {error}. Give it plain data."
        ) from error
    request = _request(function, math.ceil(timeout) + 1, memory, os.getcwd(), *sys.path)
    try:
        grade = _keeper().converse(lambda server: _talk(server, function, request, pickled, timeout))
    except CannotStart as error:
        raise GradingError(f"there is no process to grade in: {error}") from None
    if grade is None:
        raise GradingError("the process that grading processes are forked from was lost again and again")
    return grade


def _keeper() -> Keeper:
    return keeper(_KEY, _start, len(os.sched_getaffinity(0)))


def _start() -> ForkServer:
    path = json.dumps(_search_path())
    settings = {"namespaces": _NAMESPACES, "threads": THREADS}
    # With an empty environment: what is in this one is no business of an answer's.
    return ForkServer(lambda file: [sys.executable, "-c", _BOOT, path, str(file)], {}, settings)


def _talk(server: ForkServer, function: str, request: bytes, arguments: bytes, timeout: float) -> Grade:
    """Have it graded. Raises `ServerLost`."""
    with contextlib.ExitStack() as mine, contextlib.ExitStack() as theirs:
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        given, its_arguments = os.pipe()[::-1]
        results, its_results = os.pipe()
        mine.enter_context(ours)  # closing this and `given` ends the process
        theirs.enter_context(its)
        for stack, files in ((mine, (given, results)), (theirs, (its_arguments, its_results))):
            for file in files:
                stack.callback(os.close, file)
        # As much as any pipe holds goes first, so that the clock does not run while this thread waits for a core.
        message = framed(arguments)
        send(given, message[: select.PIPE_BUF])
        server.send(request, [its.fileno(), its_arguments, its_results])
        theirs.close()
        with contextlib.suppress(BrokenPipeError):  # what comes next says why
            send(given, message[select.PIPE_BUF :])
        return _Conversation(function, ours, results, timeout).grade()


class _Conversation:
    """Waits for a grade, and looks at the clock."""

    def __init__(self, function: str, server: socket.socket, results: int, timeout: float) -> None:
        self._function = function
        self._server = server
        self._results = results
        self._timeout = timeout
        self._received = bytearray()
        os.set_blocking(results, False)

    def grade(self) -> Grade:
        """What came of it. Raises `GradingError` and `ServerLost`."""
        poll = select.poll()
        for file in (self._results, self._server.fileno()):
            poll.register(file, select.POLLIN)
        deadline = time.monotonic() + self._timeout
        while True:
            left = deadline - time.monotonic()
            ready = dict(poll.poll(None if left == math.inf else max(0.0, 1000 * left)))
            if self._results in ready:
                if not (chunk := self._chunk()):
                    poll.unregister(self._results)  # how it ended is the next thing that comes
                elif (grade := self._said(chunk)) is not None:
                    return grade
            elif self._server.fileno() in ready:
                message = self._server.recv(MESSAGE_BYTES)
                if message[:1] != ASK:
                    return self._ended(message)
                age = Age.decoded(message)
                left = min(self._timeout - age.cpu, _STALLS * self._timeout - age.seconds)
                if left <= 0:
                    waited = age.cpu < self._timeout
                    spent = f"{_STALLS * self._timeout:g} s" if waited else f"{self._timeout:g} s of CPU time"
                    return Grade(None, f"time limit: no result within {spent}")
                deadline = time.monotonic() + max(left, _MIN_PAUSE)
            elif not ready:
                # The server knows how much CPU time its process had, and answers once it is done with importing. A
                # machine that is busy, or stands still for a second, makes no answer wrong.
                deadline = math.inf
                with contextlib.suppress(OSError):  # what it has sent, or its end, comes next
                    self._server.send(ASK)

    def _chunk(self) -> bytes | None:
        """The next part of what the process says, empty at the end; `None` where it took it back."""
        try:
            return os.read(self._results, _CHUNK)
        except BlockingIOError:
            return None

    def _said(self, chunk: bytes) -> Grade | None:
        """The grade; `None` while the process has not said all."""
        self._received += chunk
        if len(self._received) < HEADER.size:
            return None
        size: int = HEADER.unpack_from(self._received)[0]
        if size > MAX_RESULT:
            return Grade(None, f"the result is larger than {MAX_RESULT >> 10} KiB of JSON")
        text = self._received[HEADER.size :]
        return _read(text[:size]) if len(text) >= size else None

    def _ended(self, message: bytes) -> Grade:
        if not message:
            raise ServerLost
        if message[:1] == UNKNOWN:
            raise GradingError(
                f"the grading function {self._function!r} cannot be imported: {Report.decoded(message).detail}. "
                "Name it as 'package.module:name', in an installed module."
            )
        if message[:1] == BROKEN:
            raise GradingError(f"there is no process to grade in: {Report.decoded(message).detail}")
        return Grade(None, f"died: {_ending(Ended.decoded(message).status)}")


def _read(text: bytes | bytearray) -> Grade:
    # An answer may have written it, so that nothing is taken for granted.
    try:
        result: Any = json.loads(text)
        return Grade(None, str(result["error"])) if "error" in result else Grade(result["value"], None)
    except (ValueError, RecursionError, TypeError, LookupError) as error:
        return Grade(None, f"the result cannot be read: {type(error).__name__}")


def _ending(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"ended with code {code}"
    return f"killed by {signal.Signals(-code).name}" if -code in set(signal.Signals) else f"killed by signal {-code}"


def _is_limit(value: object, most: int) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= most


@functools.lru_cache(maxsize=64)
def _request(function: str, cpu: int, memory: int, folder: str, *path: str) -> bytes:
    """A call, encoded. `folder` and `path`, the working directory and `sys.path`, are what its search path goes by."""
    return GradingRequest(function, cpu, memory, _search_path()).encoded()


def _search_path() -> list[str]:
    return [os.path.abspath(folder) for folder in sys.path]
