"""The process that a caller has beside it: it has imported what programs need, and forks a process for each.

There is no other thread here, so that forking is safe, and nothing here listens to what a program says.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import resource
import selectors
import signal
import socket
import sys
import traceback as traceback  # what programs that fail need
from collections.abc import Callable
from typing import Any, Protocol

from gem_sandbox import child, namespaces, seccomp
from gem_sandbox.messages import BROKEN, KILL, MESSAGE_BYTES, READY, Ended, Report, Start
from gem_sandbox.plain import Plain
from gem_sandbox.view import is_below

_TUNING = ("PYTHONMALLOC", "GLIBC_TUNABLES")
"""Environment variables that are for the template alone."""


class Cell(Protocol):
    """What keeps the processes of a program together."""

    file: int
    """Can be read from once its processes are ended, or about to be."""

    def fork(self) -> int: ...
    def confine(self, start: Start) -> tuple[str, int]: ...
    def kill(self) -> None: ...
    def reap(self) -> None: ...


class Process:
    """A program that is running, with all that it has started.

    Args:
        cell: what it is kept in.
        start: what was asked for.
        may_fork: whether it may start processes.
        call: the caller's socket.
        files: channel, stdout and stderr of the program.
    """

    def __init__(self, cell: Cell, start: Start, may_fork: bool, call: socket.socket, files: list[int]) -> None:
        self.call = call
        self.cell = cell
        duty = child.Duty(start, cell.confine, may_fork, call.fileno(), *files)
        self._pid = cell.fork()
        if self._pid == 0:
            child.run(duty)
        self.file = os.pidfd_open(self._pid)
        """Can be read from once the program has ended; others that it has started may go on."""

    def end(self) -> None:
        """Once it has ended: end the rest, and tell the caller."""
        _, status, usage = os.wait4(self._pid, 0)
        self.cell.kill()
        with contextlib.suppress(OSError):  # the caller may have given up
            self.call.send(Ended(status, usage.ru_utime + usage.ru_stime).encoded())


class Template:
    """Starts programs and sees to their ends; it is the callers who wait, and who look at the clock.

    Args:
        control: brings a `Start` and four file descriptors per message; closed by the end of the caller's process.
        plain: for the backend without namespaces.
    """

    def __init__(self, control: socket.socket, plain: Plain | None) -> None:
        self._control = control
        self._cell: Callable[[], Cell] = plain.cell if plain else namespaces.Cell
        self._may_fork = plain.may_fork if plain else True
        self._processes: set[Process] = set()
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ, self._accept)

    def serve(self) -> None:
        """Until the caller's process is gone."""
        try:
            while True:
                for key, _ in self._selector.select():
                    if self._selector.get_map().get(key.fd) is key:  # one before it may have ended it
                        key.data()
        except EOFError:
            for process in [*self._processes]:
                process.cell.kill()
                self._gone(process)

    def _accept(self) -> None:
        message, files, _, _ = socket.recv_fds(self._control, MESSAGE_BYTES, 4)
        if not message:
            raise EOFError
        number, *theirs = files
        call = socket.socket(fileno=number)
        cell: Cell | None = None
        try:
            cell = self._cell()
            process = Process(cell, Start.decoded(message), self._may_fork, call, theirs)
        except OSError as error:  # the machine has no room for more
            self._refuse(call, cell, error)
            return
        finally:
            for file in theirs:
                os.close(file)
        self._processes.add(process)
        self._selector.register(process.file, selectors.EVENT_READ, lambda: self._ended(process))
        self._selector.register(process.call, selectors.EVENT_READ, lambda: self._asked(process))
        self._selector.register(process.cell.file, selectors.EVENT_READ, lambda: self._gone(process))

    def _refuse(self, call: socket.socket, cell: Cell | None, error: OSError) -> None:
        with call, contextlib.suppress(OSError):
            call.send(Report(BROKEN, str(error)).encoded())
        if cell is not None:
            cell.kill()
            cell.reap()

    def _asked(self, process: Process) -> None:
        with contextlib.suppress(OSError):
            assert process.call.recv(MESSAGE_BYTES) in {KILL, b""}
        self._selector.unregister(process.call)  # for good: nothing else comes
        process.cell.kill()

    def _ended(self, process: Process) -> None:
        self._selector.unregister(process.file)
        os.close(process.file)
        process.file = -1
        process.end()

    def _gone(self, process: Process) -> None:
        if process.file != -1:
            self._ended(process)
        with contextlib.suppress(KeyError):
            self._selector.unregister(process.call)
        process.call.close()
        self._processes.remove(process)
        self._selector.unregister(process.cell.file)
        process.cell.reap()


def main() -> None:
    """Serve the process whose end of the socket is the file descriptor that the command line names."""
    with socket.socket(fileno=int(sys.argv[1])) as control:
        settings: dict[str, Any] = json.loads(control.recv(MESSAGE_BYTES))
        plain = Plain(settings["readable"], settings["folder"]) if settings["backend"] == "limits" else None
        if plain is None:
            namespaces.enter()
        _settle(settings)
        control.send(_preload(settings["preload"]))
        os.dup2(os.open(os.devnull, os.O_RDWR), 2)
        gc.collect()
        gc.freeze()  # so that the programs' collections leave these pages shared
        Template(control, plain).serve()
        if plain is not None:
            plain.close()


def _settle(settings: dict[str, Any]) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    files = child.FILES if hard == resource.RLIM_INFINITY else min(child.FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    for name in _TUNING:
        os.environ.pop(name, None)
    path = dict.fromkeys([*sys.path[1:], *settings["path"]])
    sys.path[:] = [one for one in path if any(is_below(one, folder) for folder in settings["readable"])]
    seccomp.prepare()


def _preload(names: list[str]) -> bytes:
    for name in names:
        try:
            importlib.import_module(name)
        except BaseException as error:
            return f"{name}: {type(error).__name__}: {error}".encode(errors="replace")[:MESSAGE_BYTES]
    for name in [name for name in sys.modules if name.partition(".")[0] == __package__]:
        del sys.modules[name]
    return READY
