"""The server's side of a fork server: it forks a process for each call, and sees to the end of it.

There is no other thread here, so that forking is safe, and nothing here listens to what a process says of itself.
"""

from __future__ import annotations

import contextlib
import math
import os
import resource
import selectors
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, NoReturn, Protocol

from gem_sandbox._memory import id_in_proc
from gem_sandbox.messages import ASK, BROKEN, HANDED, MESSAGE_BYTES, REQUEST_BYTES, Age, Ended, Report

FILES = 4096
"""No file descriptor of a server is higher."""
MIN_FILES = 128
"""A server with fewer file descriptors than this is of no use."""
_MAX_FILES = 8
"""File descriptors of a request, at most."""
_FILES_PER_PROCESS = 3
_OTHER_FILES = 64
"""File descriptors of a server that belong to no call: its own, those of spares, and those of the next request."""
_LOOK_SECONDS = 0.05
"""Between two looks at the processes of a call."""
_LOOK_PAUSES = 4
"""The pause after a look, as a multiple of the time that as many looks take as there are calls."""
_MOMENT_SECONDS = 0.005
"""How long a look keeps others waiting. One at a call with many processes and files takes a hundred times as long."""
_MOMENTS = 4
"""Between two looks for requests and ends."""
_LOOKS_ABOVE = 4
"""Looks in succession that find too much before a call is ended."""
_NEXT_LOOK_SECONDS = 0.005
"""After the first of them; twice as long after each other one."""
_SPARES = 2
"""Processes that are made at a time for the calls to come. Each fork makes the server copy the pages that it writes to
from then on, so that two at a time cost less than one and one."""


class Cell(Protocol):
    """What keeps the processes of a call together."""

    file: int
    """Can be read from once its processes have ended, or are about to."""

    def fork(self) -> int: ...
    def others(self) -> Sequence[int]:
        """Ids in /proc of processes that are to be looked at beside the forked one."""
        ...

    def kill(self) -> None: ...
    def reap(self) -> None: ...


class Group:
    """A process group: the cell that confines nothing."""

    def __init__(self) -> None:
        self._pid = 0
        self.file = os.eventfd(0)

    def fork(self) -> int:
        """As `os.fork`. The child leads its group by its own doing."""
        self._pid = os.fork()
        return self._pid

    def others(self) -> Sequence[int]:
        """None: what leaves the tree of the process is not known to be its."""
        return ()

    def kill(self) -> None:
        """End the group's processes."""
        for kill in (os.killpg, os.kill) if self._pid else ():  # it may not lead a group yet
            with contextlib.suppress(ProcessLookupError):
                kill(self._pid, signal.SIGKILL)
        os.eventfd_write(self.file, 1)

    def reap(self) -> None:
        """Once the process has ended."""
        os.close(self.file)


class Refused(Exception):
    """A request that cannot be met, before any fork. `report` is sent to the caller."""

    def __init__(self, report: Report) -> None:
        self.report = report


class Job(NamedTuple):
    """What a process is for."""

    cell: Cell
    """What it is kept in."""
    run: Callable[[int], NoReturn]
    """What it does from its fork to its end. It is given the file descriptor of its desk: a socket that brings `HANDED`
    and the file descriptors of its call, maybe later, or ends without."""
    look: Callable[[Sequence[int]], Iterator[bool]] | None = None
    """Looks now and then at processes (their ids in /proc), with all below them, in steps. The last says whether they
    use more memory than the call may."""
    ends_if_stopped: bool = False
    """Whether the call ends when its process is stopped: a stopped process neither answers nor keeps its time limit."""


class Process:
    """A process for one call, with all that it starts.

    Args:
        request: what it was made for.
        job: what it does, and where.
    """

    call: socket.socket
    """The caller's, once it has been handed over."""

    def __init__(self, request: bytes, job: Job) -> None:
        self.request = request
        self.cell, self._run, self._look, self._ends_if_stopped = job
        self._is_too_large = False
        self._steps: Iterator[bool] | None = None
        """Of the look that is under way."""
        self._spent = 0.0
        """Seconds, by that look."""
        self._above = 0
        """Looks in succession that found too much."""
        self.next_look = math.inf
        """When."""
        self._desk, self._its_desk = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def fork(self) -> None:
        """Start it; it makes itself ready, and waits for its call if that is not there yet."""
        with self._its_desk as desk:
            self._pid = self.cell.fork()
            if self._pid == 0:
                self._run(desk.fileno())
        self._begin = time.monotonic()
        self.file = os.pidfd_open(self._pid)
        """Can be read from once the process has ended; others that it has started may still run."""

    def hand(self, call: socket.socket, files: Sequence[int]) -> None:
        """Give it its call: the caller's socket, and the other file descriptors of the request.

        Raises:
            OSError: it has ended, or ends without a look at the call.
        """
        with self._desk as desk:
            socket.send_fds(desk, [HANDED], [call.fileno(), *files])
        self.call = call
        self._begin = time.monotonic()
        self.next_look = self._begin + _LOOK_SECONDS if self._look else math.inf

    def age(self) -> Age:
        """How long it has had its call, without the time that it was ready to run and had no core. Where its priority
        is not the server's, because there are many of it or by its own doing, that time was its to lose."""
        normal = os.getpriority(os.PRIO_PROCESS, self._pid) <= os.getpriority(os.PRIO_PROCESS, 0)
        normal = normal and os.sched_getscheduler(self._pid) == os.sched_getscheduler(0)
        seconds = time.monotonic() - self._begin - (_waited(self.file) if normal else 0.0)
        return Age(seconds, time.clock_gettime(_cpu_clock(self._pid)))

    def look(self, calls: int) -> None:
        """Look for a moment at what it has and uses. Ends it where that is more memory than it may at several looks:
        what processes share counts too much for a moment while one of them starts or ends.

        Args:
            calls: that are looked at.
        """
        if self._look is None or self.file == -1:
            self.next_look = math.inf
            return
        if self._ends_if_stopped and _is_stopped(self.file):
            self.cell.kill()
        self._steps = self._steps or self._look(self._roots())
        begin = time.thread_time()
        paused = (above for above in self._steps if above or time.thread_time() - begin > _MOMENT_SECONDS)
        above = next(paused, None)
        self._spent += time.thread_time() - begin
        if above is not False:
            self._looked(bool(above), calls)

    def _looked(self, above: bool, calls: int) -> None:
        self._above = self._above + 1 if above else 0
        if self._above >= _LOOKS_ABOVE:
            self._is_too_large = True
            self.cell.kill()
        pause = max(_LOOK_SECONDS, _LOOK_PAUSES * self._spent * calls)
        self._steps, self._spent = None, 0.0
        self.next_look = time.monotonic() + (_NEXT_LOOK_SECONDS * 2 ** (self._above - 1) if above else pause)

    def _roots(self) -> list[int]:
        return [id_in_proc(self.file), *self.cell.others()]

    def end(self) -> None:
        """Once it has ended: end the rest, and tell the caller."""
        self.cell.kill()
        status, cpu = self._wait()
        with contextlib.suppress(OSError):  # the caller may have given up
            self.call.send(Ended(status, cpu, self._is_too_large).encoded())

    def discard(self) -> None:
        """End it, where it has no call."""
        self._desk.close()
        self.cell.kill()
        self._wait()
        self.cell.reap()

    def _wait(self) -> tuple[int, float]:
        os.close(self.file)
        self.file = -1
        _, status, usage = os.wait4(self._pid, 0)
        return status, usage.ru_utime + usage.ru_stime


class Server:
    """Starts processes and sees to their ends; it is the callers who wait, and who look at the clock.

    Args:
        control: brings a request and file descriptors per message; closed by the end of the caller's process.
        job: what a process for a request does. Raises `OSError`, `Refused`.
        spares: whether processes for equal requests are forked ahead.
    """

    def __init__(self, control: socket.socket, job: Callable[[bytes], Job], *, spares: bool) -> None:
        self._control = control
        self._job = job
        self._processes: set[Process] = set()
        self._has_spares = spares
        self._spares: list[Process] = []
        """All for equal requests."""
        self._most = max(0, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - _OTHER_FILES) // _FILES_PER_PROCESS
        """Processes at one time; the server has file descriptors for no more."""
        self._last: bytes | None = None
        self._expected: bytes | None = None
        """What spares are to be made for as soon as there is time."""
        self._selector = selectors.DefaultSelector()
        self._selector.register(control, selectors.EVENT_READ, self._accept)

    def serve(self) -> None:
        """Until the caller's process is gone."""
        try:
            while True:
                events = self._selector.select(0 if self._expected else self._until_look())
                if not events and self._expected:
                    self._fork_ahead(self._expected)
                for key, _ in events:
                    if self._selector.get_map().get(key.fd) is key:  # an earlier event may have ended it
                        key.data()
                if self._until_look() == 0:
                    self._look()
        except EOFError:
            for process in [*self._processes]:
                with contextlib.suppress(OSError):  # how it ends now says nothing about it
                    process.call.shutdown(socket.SHUT_RDWR)
                process.cell.kill()
                self._gone(process)
            self._discard()

    def _until_look(self) -> float | None:
        """Seconds until a process is looked at."""
        first = min((process.next_look for process in self._processes), default=math.inf)
        return None if first == math.inf else max(0.0, first - time.monotonic())

    def _look(self) -> None:
        """Look at those that wait for it longest, for a few moments."""
        begin = time.monotonic()
        for process in sorted(self._processes, key=lambda process: process.next_look):
            now = time.monotonic()
            if process.next_look > now or now - begin > _MOMENTS * _MOMENT_SECONDS:
                return
            process.next_look = now  # the others come before it does again
            process.look(len(self._processes))

    def _accept(self) -> None:
        request, files, _, _ = socket.recv_fds(self._control, REQUEST_BYTES, _MAX_FILES)
        if not request:
            raise EOFError
        number, *theirs = files
        call = socket.socket(fileno=number)
        try:
            self._check_room()
            process = self._spared(request, call, theirs) or self._forked(request, call, theirs)
        except (OSError, Refused) as error:  # OSError: the machine has no room for more
            report = error.report if isinstance(error, Refused) else Report(BROKEN, str(error))
            with call, contextlib.suppress(OSError):
                call.send(report.encoded())
            return
        finally:
            for file in theirs:
                os.close(file)
        self._expect(request)
        self._processes.add(process)
        self._selector.register(process.file, selectors.EVENT_READ, lambda: self._ended(process))
        self._selector.register(process.call, selectors.EVENT_READ, lambda: self._asked(process))
        self._selector.register(process.cell.file, selectors.EVENT_READ, lambda: self._gone(process))

    def _check_room(self) -> None:
        if len(self._processes) >= self._most:
            problem = f"{self._most} calls and sessions are open, and it has file descriptors for no more"
            raise Refused(Report(BROKEN, problem))

    def _spared(self, request: bytes, call: socket.socket, files: Sequence[int]) -> Process | None:
        """A spare process, if there is one for this request."""
        while self._spares and self._spares[0].request == request:
            spare = self._spares.pop(0)
            try:
                spare.hand(call, files)
            except OSError:  # killed, or it could not be confined: another one may fare better, or says why not
                spare.discard()
            else:
                return spare
        return None

    def _forked(self, request: bytes, call: socket.socket | None = None, files: Sequence[int] = ()) -> Process:
        """A new process, with its call if there is one. Raises `OSError`, `Refused`."""
        job = self._job(request)
        try:
            process = Process(request, job)
            if call:
                process.hand(call, files)  # so that it can say what goes wrong
            process.fork()
        except OSError:
            job.cell.kill()
            job.cell.reap()
            raise
        return process

    def _expect(self, request: bytes) -> None:
        """After two equal requests: a third."""
        if self._has_spares and request == self._last and request not in [spare.request for spare in self._spares]:
            self._expected = request
        self._last = request

    def _fork_ahead(self, request: bytes) -> None:
        """Have spares for the calls to come, and no others."""
        self._expected = None
        self._discard()
        with contextlib.suppress(OSError):  # the next call will say so
            for _ in range(_SPARES):
                self._spares.append(self._forked(request))

    def _discard(self) -> None:
        while self._spares:
            self._spares.pop().discard()

    def _asked(self, process: Process) -> None:
        message = b""
        with contextlib.suppress(OSError):
            message = process.call.recv(MESSAGE_BYTES)
        if message == ASK:
            with contextlib.suppress(OSError):
                process.call.send(process.age().encoded())
            return
        self._selector.unregister(process.call)  # for good: nothing comes after KILL, or the caller's end
        process.cell.kill()

    def _ended(self, process: Process) -> None:
        self._selector.unregister(process.file)
        with contextlib.suppress(KeyError):  # whatever the caller asks for now comes too late
            self._selector.unregister(process.call)
        process.end()

    def _gone(self, process: Process) -> None:
        if process.file != -1:
            self._ended(process)
        process.call.close()
        self._processes.remove(process)
        self._selector.unregister(process.cell.file)
        process.cell.reap()


def limit_files() -> None:
    """Allow this process as many file descriptors as it may have, up to `FILES`."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    files = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))


def address_space() -> int:
    """Bytes that this process has mapped."""
    with open("/proc/self/statm", "rb", buffering=0) as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def _cpu_clock(pid: int) -> int:
    """The id of the clock that counts the CPU time of a process, as the kernel makes it (clock_getcpuclockid(3))."""
    return ~pid << 3 | 2


def _is_stopped(file: int) -> bool:
    """Whether a signal has stopped the process of a pidfd, which is a child of this one."""
    with contextlib.suppress(ChildProcessError):  # it has ended
        return os.waitid(os.P_PIDFD, file, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None
    return False


def _waited(file: int) -> float:
    """Seconds that the process of a pidfd was ready to run and had no core, where the kernel tells."""
    try:
        with open(f"/proc/{id_in_proc(file)}/schedstat", "rb", buffering=0) as schedule:
            return int(schedule.read().split()[1]) / 1e9
    except FileNotFoundError:
        return 0.0
