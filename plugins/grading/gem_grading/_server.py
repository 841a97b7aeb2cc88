"""The server of grading processes: it imports the grading functions, and forks a process for each call.

Such a process starts with everything imported, in about a millisecond, and nothing that an answer does to it outlives
it.
"""

from __future__ import annotations

import fcntl
import functools
import gc
import importlib
import json
import os
import resource
import socket
import sys
from collections.abc import Callable
from typing import Any

from gem_grading import _child as child
from gem_grading._messages import UNKNOWN, GradingRequest
from gem_grading.confinement import RULES, enter_namespaces, steps
from gem_sandbox import kernel, seccomp
from gem_sandbox.messages import MESSAGE_BYTES, READY, Report
from gem_sandbox.serving import Group, Job, Refused, Server, limit_files


class Functions:
    """The grading functions that were asked for, imported once each."""

    def __init__(self) -> None:
        self._functions: dict[str, Callable[..., Any]] = {}
        self._steps = steps()
        self._known_duty = functools.lru_cache(maxsize=64)(self._duty)

    def job(self, request: bytes) -> Job:
        """What a process does for a `GradingRequest`. Raises `OSError`, and `Refused` if it cannot be imported."""
        return Job(Group(), functools.partial(child.run, self._known_duty(request)))

    def _duty(self, request: bytes) -> child.Duty:
        call = GradingRequest.decoded(request)
        try:
            function = self._function(call)
        except (Exception, SystemExit) as error:  # a module that is a script exits
            raise Refused(Report(UNKNOWN, f"{type(error).__name__}: {error}")) from None
        return child.Duty(function, child.limits(call), self._steps)

    def _function(self, call: GradingRequest) -> Callable[..., Any]:
        if call.function not in self._functions:
            sys.path[:] = call.path
            importlib.invalidate_caches()
            module, _, name = call.function.partition(":")
            function = getattr(importlib.import_module(module), name)
            self._steps = steps()
            self._functions[call.function] = function
            self._known_duty.cache_clear()  # the limit of memory is on top of what is imported now
            gc.collect()
            gc.freeze()  # so that the processes' collections leave these pages shared
        return self._functions[call.function]


def main() -> None:
    """Serve the process whose end of the socket is the file descriptor that the command line names."""
    os.environ.clear()  # Python has put the encoding there
    with socket.socket(fileno=_moved(int(sys.argv[2]))) as control:
        settings: dict[str, Any] = json.loads(control.recv(MESSAGE_BYTES))
        if problem := seccomp.unavailable():
            control.send(problem.encode())
            return
        if settings["namespaces"]:
            enter_namespaces()
        _settle(settings["threads"])
        functions = Functions()
        control.send(READY)
        # No spares: each would hold memory, and a call waits for its grader longer than for the fork.
        Server(control, functions.job, spares=False).serve()


def _moved(file: int) -> int:
    """A file descriptor above those that a grading process has its own use for, which are taken until then."""
    moved = fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, RULES + 1)
    for reserved in (child.DESK, RULES):
        os.dup2(0, reserved)
    if file > RULES:
        os.close(file)
    return moved


def _settle(threads: dict[str, str]) -> None:
    limit_files()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
    for name, value in threads.items():
        os.putenv(name, value)  # for libraries; `os.environ` remains empty
