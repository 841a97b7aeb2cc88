"""A grading process, forked from the server: it calls one function and says what came of it.

Short, because every page of memory that is touched here is copied first. What can be made ready is made ready in the
server.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pickle
import resource
import select
import signal
import socket
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

from gem_grading._messages import GradingRequest, framed, receive, send
from gem_grading.confinement import RULES
from gem_sandbox.messages import BROKEN, Report
from gem_sandbox.serving import FILES, address_space

DESK = 3
_FILES = socket.CMSG_SPACE(8 * 4)
"""Room for the file descriptors of a call."""
_OPEN_FILES = 64
_SIGKILL = int(signal.SIGKILL)
_ERROR_CHARACTERS = 500
_encoded = json.JSONEncoder().encode


class Duty(NamedTuple):
    """What a grading process has to do."""

    function: Callable[..., Any]
    limits: dict[int, int]
    """Of its resources, by `resource.RLIMIT_*`; it cannot raise them again."""
    steps: Sequence[Callable[[], None]]
    """They confine it."""


def limits(call: GradingRequest) -> dict[int, int]:
    """See `Duty`."""
    return {
        resource.RLIMIT_CPU: call.cpu,
        resource.RLIMIT_NOFILE: _OPEN_FILES,
        resource.RLIMIT_AS: address_space() + call.memory,
    }


def run(duty: Duty, file: int) -> NoReturn:
    """Call the function, say what it returned, and end.

    Args:
        duty: see above.
        file: file descriptor of the desk, which brings the caller's: call, arguments, and the pipe for the result.
    """
    try:
        os.setsid()
        call, arguments, results = _received(file)
        values = _prepared(duty, call, arguments)
        send(results, framed(_outcome(duty.function, values)))
    finally:
        os._exit(0)


def _received(file: int) -> tuple[int, int, int]:
    """File descriptors of the caller's socket, the arguments, and the pipe for the result.

    All others are closed but the standard ones and the rules.
    """
    os.dup2(1, 2)  # the server's standard output goes nowhere
    os.dup2(file, DESK)
    os.closerange(RULES + 1, FILES)
    # As `socket.recv_fds` does, with fewer pages touched.
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, DESK) as desk:
        _, handed, _, _ = desk.recvmsg(1, _FILES)
    if not handed:  # there will be no call
        os._exit(0)
    call, arguments, results = memoryview(handed[0][2]).cast("i")
    return call, arguments, results


def _prepared(duty: Duty, call: int, arguments: int) -> tuple[Any, ...]:
    """Read the arguments, and confine this process. Where that fails, it says why and ends: no answer is graded."""
    try:
        values = pickle.loads(receive(arguments))
        _end_with_the_call(arguments)
        for which, limit in duty.limits.items():
            resource.setrlimit(which, (limit, limit))
        for step in duty.steps:
            step()
        os.close(RULES)
        os.close(call)
    except BaseException as error:
        with contextlib.suppress(OSError), socket.socket(fileno=call) as caller:  # it may have given up
            caller.send(Report(BROKEN, f"{type(error).__name__}: {error}").encoded())
        os._exit(0)
    return values


def _end_with_the_call(file: int) -> None:
    # The kernel sends SIGKILL to this process group once the caller's end of the pipe is closed: the caller gave up, or
    # died, and be it by SIGKILL. This needs no server.
    fcntl.fcntl(file, fcntl.F_SETOWN, -os.getpid())
    fcntl.fcntl(file, fcntl.F_SETSIG, _SIGKILL)
    fcntl.fcntl(file, fcntl.F_SETFL, os.O_RDONLY | os.O_ASYNC)
    poll = select.poll()
    poll.register(file, select.POLLIN)
    if poll.poll(0):  # it was closed before this could be arranged
        os._exit(0)


def _outcome(function: Callable[..., Any], arguments: tuple[Any, ...]) -> bytes:
    try:
        value = function(*arguments)
    except MemoryError:
        return _failure("memory limit: it needs more than it may have")
    except BaseException as error:
        return _failure(f"{type(error).__name__}: {error}")
    try:
        return _encoded({"value": value}).encode()
    except Exception as error:
        return _failure(f"the result is not plain data: {type(error).__name__}: {error}")


def _failure(why: str) -> bytes:
    return _encoded({"error": why[:_ERROR_CHARACTERS]}).encode()
