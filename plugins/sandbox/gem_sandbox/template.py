"""The process that a caller has beside it: it has imported what programs need, and forks a process for each.

There is no other thread here, so that forking is safe, and nothing here listens to what a program says.
"""

from __future__ import annotations

import array as array  # what `socket` imports for file descriptors
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
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from gem_sandbox import child, namespaces, program, seccomp
from gem_sandbox.messages import BROKEN, HANDED, KILL, MESSAGE_BYTES, READY, Ended, Report, Start
from gem_sandbox.plain import Plain
from gem_sandbox.view import is_below

_TUNING = ("PYTHONMALLOC", "GLIBC_TUNABLES")
"""Environment variables that are for the template alone."""
_SPARES = 2
"""Processes that are made at a time for the calls to come. Each fork makes the template copy the pages that it writes
to from then on, so that two at a time cost less than one and one."""


class Cell(Protocol):
    """What keeps the processes of a program together."""

    file: int
    """Can be read from once its processes are ended, or about to be."""

    def fork(self) -> int: ...
    def confine(self, start: Start) -> tuple[str, int]: ...
    def kill(self) -> None: ...
    def reap(self) -> None: ...


class Process:
    """A process for one program, with all that the program starts.

    Args:
        cell: what it is kept in.
        start: what was asked for.
        address_space: bytes that the template has mapped.
        may_fork: whether it may start processes.
    """

    call: socket.socket
    """The caller's, once it has been handed over."""

    def __init__(self, cell: Cell, start: Start, address_space: int, may_fork: bool) -> None:
        self.cell = cell
        self.start = start
        self._address_space = address_space
        self._may_fork = may_fork
        self._desk, self._its_desk = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def fork(self) -> None:
        """Start it; it confines itself, and waits for its call if that is not there yet."""
        with self._its_desk as desk:
            duty = child.Duty(self.start, self._address_space, self.cell.confine, self._may_fork, desk.fileno())
            self._pid = self.cell.fork()
            if self._pid == 0:
                child.run(duty)
        self.file = os.pidfd_open(self._pid)
        """Can be read from once the program has ended; others that it has started may go on."""

    def hand(self, call: socket.socket, files: Sequence[int]) -> None:
        """Give it its call: the caller's socket; channel, stdout and stderr of the program.

        Raises:
            OSError: it has ended, or ends without a look at the call.
        """
        with self._desk as desk:
            socket.send_fds(desk, [HANDED], [call.fileno(), *files])
        self.call = call

    def end(self) -> None:
        """Once it has ended: end the rest, and tell the caller."""
        _, status, usage = self._wait()
        self.cell.kill()
        with contextlib.suppress(OSError):  # the caller may have given up
            self.call.send(Ended(status, usage.ru_utime + usage.ru_stime).encoded())

    def discard(self) -> None:
        """End it, where it has no call."""
        self._desk.close()
        self.cell.kill()
        self._wait()
        self.cell.reap()

    def _wait(self) -> tuple[int, int, resource.struct_rusage]:
        os.close(self.file)
        self.file = -1
        return os.wait4(self._pid, 0)


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
        self._address_space = _address_space()
        self._processes: set[Process] = set()
        self._has_spares = plain is None  # they would count among the processes that `Plain` limits
        self._spares: list[Process] = []
        """All for equal calls."""
        self._last: Start | None = None
        self._expected: Start | None = None
        """What spares are to be made for as soon as there is time."""
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ, self._accept)

    def serve(self) -> None:
        """Until the caller's process is gone."""
        try:
            while True:
                events = self._selector.select(0 if self._expected else None)
                if not events and self._expected:
                    self._prepare(self._expected)
                for key, _ in events:
                    if self._selector.get_map().get(key.fd) is key:  # one before it may have ended it
                        key.data()
        except EOFError:
            for process in [*self._processes]:
                process.cell.kill()
                self._gone(process)
            self._discard()

    def _accept(self) -> None:
        message, files, _, _ = socket.recv_fds(self._control, MESSAGE_BYTES, 4)
        if not message:
            raise EOFError
        number, *theirs = files
        start, call = Start.decoded(message), socket.socket(fileno=number)
        try:
            process = self._spared(start, call, theirs) or self._forked(start, call, theirs)
        except OSError as error:  # the machine has no room for more
            with call, contextlib.suppress(OSError):
                call.send(Report(BROKEN, str(error)).encoded())
            return
        finally:
            for file in theirs:
                os.close(file)
        self._expect(start)
        self._processes.add(process)
        self._selector.register(process.file, selectors.EVENT_READ, lambda: self._ended(process))
        self._selector.register(process.call, selectors.EVENT_READ, lambda: self._asked(process))
        self._selector.register(process.cell.file, selectors.EVENT_READ, lambda: self._gone(process))

    def _spared(self, start: Start, call: socket.socket, files: Sequence[int]) -> Process | None:
        """A spare process, if there is one for this call."""
        while self._spares and self._spares[0].start == start:
            spare = self._spares.pop(0)
            try:
                spare.hand(call, files)
            except OSError:  # killed, or it could not be confined: another one may fare better, or says why not
                spare.discard()
            else:
                return spare
        return None

    def _forked(self, start: Start, call: socket.socket | None = None, files: Sequence[int] = ()) -> Process:
        """A new process, with its call if there is one. Raises `OSError`."""
        cell = self._cell()
        try:
            process = Process(cell, start, self._address_space, self._may_fork)
            if call:
                process.hand(call, files)  # so that it can say what goes wrong
            process.fork()
        except OSError:
            cell.kill()
            cell.reap()
            raise
        return process

    def _expect(self, start: Start) -> None:
        """After two equal calls: a third."""
        if self._has_spares and start == self._last and start not in [spare.start for spare in self._spares]:
            self._expected = start
        self._last = start

    def _prepare(self, start: Start) -> None:
        """Have spares for the calls to come, and no others."""
        self._expected = None
        self._discard()
        with contextlib.suppress(OSError):  # the next call will say so
            for _ in range(_SPARES):
                self._spares.append(self._forked(start))

    def _discard(self) -> None:
        while self._spares:
            self._spares.pop().discard()

    def _asked(self, process: Process) -> None:
        with contextlib.suppress(OSError):
            assert process.call.recv(MESSAGE_BYTES) in {KILL, b""}
        self._selector.unregister(process.call)  # for good: nothing else comes
        process.cell.kill()

    def _ended(self, process: Process) -> None:
        self._selector.unregister(process.file)
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
        _open_streams()
        gc.collect()
        gc.freeze()  # so that the programs' collections leave these pages shared
        Template(control, plain).serve()
        if plain is not None:
            plain.close()


def _settle(settings: dict[str, Any]) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    files = child.FILES if hard == resource.RLIM_INFINITY else min(child.FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    for none in (resource.RLIMIT_CORE, resource.RLIMIT_MEMLOCK, resource.RLIMIT_MSGQUEUE):
        resource.setrlimit(none, (0, 0))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in _TUNING:
        os.environ.pop(name, None)
    path = dict.fromkeys([*sys.path[1:], *settings["path"]])
    sys.argv[:] = [child.NAME]
    sys.path[:] = [one for one in path if any(is_below(one, folder) for folder in settings["readable"])]
    seccomp.prepare()


def _open_streams() -> None:
    """The programs' standard streams, once for all, as they are for files of the same kinds as theirs."""
    read, write = os.pipe()
    os.close(read)
    _become_standard(os.memfd_create("stdin"), write)
    program.open_streams()
    _become_standard(os.open(os.devnull, os.O_RDONLY), os.open(os.devnull, os.O_WRONLY))


def _become_standard(stdin: int, out: int) -> None:
    for standard, file in enumerate((stdin, out, out)):
        os.dup2(file, standard)
    os.close(stdin)
    os.close(out)


def _address_space() -> int:
    with open("/proc/self/statm", "rb", buffering=0) as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def _preload(names: list[str]) -> bytes:
    for name in names:
        try:
            importlib.import_module(name)
        except BaseException as error:
            return f"{name}: {type(error).__name__}: {error}".encode(errors="replace")[:MESSAGE_BYTES]
    for name in [name for name in sys.modules if name.partition(".")[0] == __package__]:
        del sys.modules[name]
    return READY
