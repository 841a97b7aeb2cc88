"""The server of grading processes: it imports the grading functions, and forks a process for each call.

Such a process starts with everything imported, in about a millisecond, and nothing that an answer does to it outlives
it.
"""

from __future__ import annotations

import gc
import importlib
import socket
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from gem_grading import child
from gem_grading.messages import UNKNOWN, Call
from gem_grading.permissions import watcher
from gem_sandbox.messages import MESSAGE_BYTES, READY, Report
from gem_sandbox.serving import Group, Job, Refused, Server, limit_files


class Functions:
    """The grading functions that were asked for, imported once each."""

    def __init__(self) -> None:
        self._functions: dict[str, Callable[..., Any]] = {}
        self._watch = watcher(sys.path)

    def job(self, request: bytes) -> Job:
        """What a process does for a `Call`. Raises `Refused` where the function cannot be imported."""
        call = Call.decoded(request)
        try:
            function = self._function(call)
        except (Exception, SystemExit) as error:  # a module that is a script exits
            raise Refused(Report(UNKNOWN, f"{type(error).__name__}: {error}")) from None
        duty = child.Duty(function, child.limits(call), self._watch)
        return Job(Group(), partial(child.run, duty))

    def _function(self, call: Call) -> Callable[..., Any]:
        if call.function not in self._functions:
            sys.path[:] = call.path
            importlib.invalidate_caches()
            module, _, name = call.function.partition(":")
            self._functions[call.function] = getattr(importlib.import_module(module), name)
            self._watch = watcher(sys.path)
            gc.collect()
            gc.freeze()  # so that the processes' collections leave these pages shared
        return self._functions[call.function]


def main() -> None:
    """Serve the process whose end of the socket is the file descriptor that the command line names."""
    limit_files()
    with socket.socket(fileno=int(sys.argv[2])) as control:
        control.recv(MESSAGE_BYTES)  # there are no settings
        control.send(READY)
        # No spares: each would hold memory, and a call waits for its grader longer than for the fork.
        Server(control, Functions().job, spares=False).serve()
