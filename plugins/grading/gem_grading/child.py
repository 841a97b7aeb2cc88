"""A grading process, forked from the server: it calls one function and says what came of it.

Short, because every page of memory that is touched here is copied first. What can be made ready is made ready in the
server.
"""

from __future__ import annotations

import json
import os
import pickle
import resource
import signal
import socket
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from gem_grading.messages import HEADER, Call
from gem_grading.permissions import Watch, seal
from gem_sandbox import kernel
from gem_sandbox.messages import MESSAGE_BYTES
from gem_sandbox.serving import FILES, address_space

_DESK = 3
_OPEN_FILES = 64
_ERROR_CHARACTERS = 500
_encoded = json.JSONEncoder().encode


class Duty(NamedTuple):
    """What a grading process has to do."""

    function: Callable[..., Any]
    limits: dict[int, int]
    """Of its resources, by `resource.RLIMIT_*`; it cannot raise them again."""
    watch: Watch
    """Audit hook."""
    server: int
    """Id of the server's process."""


def limits(call: Call) -> dict[int, int]:
    """See `Duty`."""
    return {
        resource.RLIMIT_CPU: call.cpu,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: _OPEN_FILES,
        resource.RLIMIT_NPROC: 0,  # neither processes nor threads; root has no such limit
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
        _end_with(duty.server)
        arguments, results = _received(file)
        for which, limit in duty.limits.items():
            resource.setrlimit(which, (limit, limit))
        values = pickle.loads(os.pread(arguments, os.fstat(arguments).st_size, 0))
        os.close(arguments)
        seal(duty.watch)
        _send(results, _outcome(duty.function, values))
    finally:
        os._exit(0)


def _end_with(server: int) -> None:
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != server:  # it was gone before this could be arranged
        os._exit(0)


def _received(file: int) -> tuple[int, int]:
    """The file descriptors of the arguments and of the pipe; all others but the standard ones are closed."""
    os.dup2(1, 2)  # the server's standard output goes nowhere
    os.dup2(file, _DESK)
    os.closerange(_DESK + 1, FILES)
    with socket.socket(fileno=_DESK) as desk:
        message, files, _, _ = socket.recv_fds(desk, MESSAGE_BYTES, 3)
    if not message:  # there will be no call
        os._exit(0)
    call, arguments, results = files
    os.close(call)
    return arguments, results


def _send(file: int, message: bytes) -> None:
    rest = memoryview(HEADER.pack(len(message)) + message)
    while rest:
        rest = rest[os.write(file, rest) :]


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
