"""The process that a grading process has beside it: it imports the grading functions, and forks a child for each call.

A child starts with everything imported, in about a millisecond, and nothing that an answer does to it outlives it.
There is no other thread here, so that forking is safe, and nothing here reads what a child says: it is passed on.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import resource
import selectors
import signal
import socket
import sys
import time
from collections.abc import Callable
from typing import Any, TypeAlias

from gem_core.grading import child
from gem_core.grading.messages import CALL_BYTES, FAILED, HEADER, MAX_RESULT, RESULT, UNKNOWN, Call, framed, send
from gem_core.grading.permissions import Watch, prepare, watcher

Verdict: TypeAlias = tuple[bytes, bytes]
"""Kind and text of a reply."""

_CHUNK = 1 << 16


class Child:
    """A call that is being graded, in a process of its own from now on.

    Args:
        call: the limits.
        function: what to call.
        watch: audit hook.
        arguments, reply: file descriptors of the caller's pipes.
    """

    def __init__(self, call: Call, function: Callable[..., Any], watch: Watch, arguments: int, reply: int) -> None:
        self._timeout = call.timeout
        self._reply = reply
        self._received = bytearray()
        self._status: int | None = None
        self.results, results = os.pipe()
        duty = child.Duty(function, arguments, results, child.limits(call), watch)
        self._pid = os.fork()
        if self._pid == 0:
            child.run(duty)
        self._start = time.monotonic()
        self.deadline = self._start + call.timeout
        """When to look how long it took, on the monotonic clock."""
        os.close(results)
        os.close(arguments)

    def read(self) -> Verdict | None:
        """What it says; `None` while it has not said all."""
        chunk = os.read(self.results, _CHUNK)
        self._received += chunk
        if not chunk:
            return FAILED, f"died: {_ending(self.kill())}".encode()
        if len(self._received) < HEADER.size:
            return None
        size: int = HEADER.unpack_from(self._received)[0]
        if size > MAX_RESULT:
            return FAILED, f"the result is larger than {MAX_RESULT >> 10} KiB of JSON".encode()
        if len(self._received) < HEADER.size + size:
            return None
        return RESULT, bytes(self._received[HEADER.size : HEADER.size + size])

    def late(self) -> Verdict | None:
        """Its end, if its time is up: what it waited for a core does not count, or a busy machine would fail it."""
        now = time.monotonic()
        left = self._timeout - (now - self._start - _waited(self._pid))
        if left > 0:
            self.deadline = now + left
            return None
        self.kill()
        return FAILED, f"time limit: no result within {self._timeout:g} s".encode()

    def kill(self) -> int:
        """End it, and all that it started; returns how it ended, as `os.waitpid` does."""
        if self._status is None:
            for kill in (os.killpg, os.kill):  # it may not lead a group yet
                with contextlib.suppress(ProcessLookupError):
                    kill(self._pid, signal.SIGKILL)
            self._status = os.waitpid(self._pid, 0)[1]
        return self._status

    def end(self, verdict: Verdict) -> None:
        """Tell the caller, and leave nothing."""
        _answer(self._reply, *verdict)
        os.close(self.results)
        self.kill()


class Template:
    """Reads calls and grades as many at a time as there are cores; the others wait in the socket that brings them.

    Args:
        control: brings a `Call` and the ends of two pipes per message; closed by the end of the process that grades.
    """

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._functions: dict[str, Callable[..., Any]] = {}
        self._watch = watcher(sys.path)
        self._children: dict[int, Child] = {}
        self._cores = len(os.sched_getaffinity(0))
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ)

    def serve(self) -> None:
        """Until the process that grades is gone."""
        try:
            while True:
                for key, _ in self._selector.select(self._patience()):
                    if key.fileobj is self._control:
                        self._accept()
                    elif verdict := self._children[key.fd].read():
                        self._end(key.fd, verdict)
                for file, one in [*self._children.items()]:
                    if one.deadline <= time.monotonic() and (verdict := one.late()):
                        self._end(file, verdict)
        except EOFError:
            for one in self._children.values():
                one.kill()

    def _patience(self) -> float | None:
        if not self._children:
            return None
        return max(0.0, min(one.deadline for one in self._children.values()) - time.monotonic())

    def _accept(self) -> None:
        message, files, _, _ = socket.recv_fds(self._control, CALL_BYTES, 2)
        if not message:
            raise EOFError
        arguments, reply = files
        call = Call.decoded(message)
        try:
            function = self._function(call)
        except (Exception, SystemExit) as error:
            os.close(arguments)
            _answer(reply, UNKNOWN, f"{type(error).__name__}: {error}".encode(errors="replace"))
            return
        one = Child(call, function, self._watch, arguments, reply)
        self._children[one.results] = one
        self._selector.register(one.results, selectors.EVENT_READ)
        if len(self._children) == self._cores:
            self._selector.unregister(self._control)

    def _end(self, file: int, verdict: Verdict) -> None:
        # Before it is closed: a fork that has not closed its copy yet would keep events of this one coming.
        self._selector.unregister(file)
        if len(self._children) == self._cores:
            self._selector.register(self._control, selectors.EVENT_READ)
        self._children.pop(file).end(verdict)

    def _function(self, call: Call) -> Callable[..., Any]:
        if call.function not in self._functions:
            sys.path[:] = call.path
            importlib.invalidate_caches()
            module, _, name = call.function.partition(":")
            self._functions[call.function] = getattr(importlib.import_module(module), name)
            self._watch = watcher(sys.path)
            gc.collect()
            gc.freeze()  # so that the children's collections leave these pages shared
        return self._functions[call.function]


def _answer(reply: int, kind: bytes, text: bytes) -> None:
    with contextlib.suppress(BrokenPipeError):  # the caller may have given up
        send(reply, framed(kind + text))
    os.close(reply)


def _waited(pid: int) -> float:
    """Seconds that a process was ready to run and had no core, where the kernel tells."""
    try:
        with open(f"/proc/{pid}/schedstat", "rb", buffering=0) as file:
            return int(file.read().split()[1]) / 1e9
    except FileNotFoundError:
        return 0.0


def _ending(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return f"ended with code {code}"
    return f"killed by {signal.Signals(-code).name}" if -code in set(signal.Signals) else f"killed by signal {-code}"


def main() -> None:
    """Serve the process whose end of the socket is the file descriptor that the command line names."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    files = child.FILES if hard == resource.RLIM_INFINITY else min(child.FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    prepare()
    with socket.socket(fileno=int(sys.argv[2])) as control:
        Template(control).serve()
