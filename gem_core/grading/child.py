"""One call, in a process of its own that was forked from the template.

Short, because every page of memory that is touched here is copied first; what can be made ready is, in the template.
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import pickle
import resource
import select
import signal
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from gem_core.grading.messages import Call, framed, receive, send
from gem_core.grading.permissions import Watch, seal

FILES = 4096
"""No file descriptor of the template is higher."""
_OPEN_FILES = 64
_ERROR_CHARACTERS = 500
_SIGKILL = int(signal.SIGKILL)
_encoded = json.JSONEncoder().encode


class Duty(NamedTuple):
    """What a child has to do."""

    function: Callable[..., Any]
    arguments: int
    """File descriptor of the caller's pipe: it brings them, and ends the child when the caller is gone."""
    results: int
    """File descriptor that the result is written to."""
    limits: dict[int, int]
    watch: Watch
    """Audit hook."""


def limits(call: Call) -> dict[int, int]:
    """Of a child's resources, by `resource.RLIMIT_*`; none of them can be raised again."""
    return {
        resource.RLIMIT_CPU: math.ceil(call.timeout) + 1,  # the template's clock comes first; this needs no template
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: _OPEN_FILES,
        resource.RLIMIT_NPROC: 0,  # neither processes nor threads; root has no such limit
        resource.RLIMIT_AS: _address_space() + call.memory,
    }


def run(duty: Duty) -> NoReturn:
    """Call the function, say what it returned, and end."""
    try:
        os.setsid()
        _keep_files(duty.arguments, duty.results)
        for which, limit in duty.limits.items():
            resource.setrlimit(which, (limit, limit))
        arguments = pickle.loads(receive(duty.arguments))
        _die_with_the_caller(duty.arguments)
        seal(duty.watch)
        send(duty.results, framed(_outcome(duty.function, arguments)))
    finally:
        os._exit(0)


def _keep_files(*kept: int) -> None:
    os.dup2(1, 2)  # the template's standard output goes nowhere
    first = 3
    for file in sorted(kept):
        os.closerange(first, file)
        first = file + 1
    os.closerange(first, FILES)


def _address_space() -> int:
    with open("/proc/self/statm", "rb", buffering=0) as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def _die_with_the_caller(file: int) -> None:
    # The kernel sends SIGKILL to this process group once the caller's end is closed: it gave up, or died, however hard.
    fcntl.fcntl(file, fcntl.F_SETOWN, -os.getpid())
    fcntl.fcntl(file, fcntl.F_SETSIG, _SIGKILL)
    fcntl.fcntl(file, fcntl.F_SETFL, os.O_RDONLY | os.O_ASYNC)
    poll = select.poll()
    poll.register(file, select.POLLIN)
    if poll.poll(0):  # it was gone before this could be arranged
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
