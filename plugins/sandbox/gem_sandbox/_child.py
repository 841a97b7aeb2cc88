"""The process of a program, forked from the server: confines itself, and becomes the program."""

from __future__ import annotations

import contextlib
import math
import os
import resource
import socket
import sys
from collections.abc import Sequence
from typing import NamedTuple, NoReturn, Protocol

from gem_sandbox import _console as console
from gem_sandbox import _program as program
from gem_sandbox import kernel, seccomp
from gem_sandbox.messages import BROKEN, FINISHED, MESSAGE_BYTES, OUT_OF_MEMORY, Report, Start
from gem_sandbox.serving import FILES

_OPEN_FILES = 256
_TIMERS = 256
"""Timers and signals that wait, at one time."""
_CHANNEL = 3
NAME = "program.py"
"""Of the file that a program is in."""


class Confining(Protocol):
    """The cell of a program; see `gem_sandbox.serving.Cell`."""

    def confine(self, start: Start) -> tuple[str, int]:
        """Confine this process; returns the folder it may write to, and the limit of processes."""
        ...


class Duty(NamedTuple):
    """What a process has to do."""

    start: Start
    address_space: int
    """Bytes that the server has mapped."""
    may_fork: bool
    """Whether it may start processes."""
    fixed: Sequence[str]
    """Of a shell: see `gem_sandbox._root.Root`."""


def run(duty: Duty, cell: Confining, file: int) -> NoReturn:
    """Confine this process, wait for a call, run what its channel brings, and end.

    Args:
        duty: see above.
        cell: confines the process.
        file: file descriptor of the desk, which brings the caller's: call, channel, stdout and stderr.
    """
    try:
        desk = _keep_desk(file)
        folder = _prepared(duty, cell, desk)
        channel = _open_files(desk)
        if duty.start.shell:
            console.serve(channel, duty.start.cpu, duty.fixed)
        _session(channel, folder, duty.start.cpu) if duty.start.session else _program(channel, folder)
    except BaseException as error:  # so little memory or disk that nothing can run
        with contextlib.suppress(BaseException):
            os.write(2, f"{type(error).__name__}: {error}\n".encode(errors="replace"))
    finally:
        os._exit(1)


def _set_limits(start: Start, address_space: int, processes: int) -> None:
    _lower(resource.RLIMIT_AS, address_space + start.memory)
    _lower(resource.RLIMIT_FSIZE, start.disk)
    _lower(resource.RLIMIT_NPROC, processes)
    _lower(resource.RLIMIT_NOFILE, _OPEN_FILES)
    _lower(resource.RLIMIT_SIGPENDING, _TIMERS)
    if not start.session:  # of a session, each run has its own
        _lower(resource.RLIMIT_CPU, start.cpu, start.cpu + 1)


def _lower(which: int, soft: int, hard: int | None = None) -> None:
    """Set a limit, `resource.RLIMIT_*`; where the caller's own is lower, that one holds."""
    callers = resource.getrlimit(which)[1]
    most = soft if hard is None else hard
    most = most if callers == resource.RLIM_INFINITY else min(most, callers)
    resource.setrlimit(which, (min(soft, most), most))


def _keep_desk(file: int) -> socket.socket:
    """Keep nothing else of the server's: this process may wait for long."""
    os.dup2(file, _CHANNEL, inheritable=False)
    os.closerange(_CHANNEL + 1, FILES)
    return socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, _CHANNEL)


def _prepared(duty: Duty, cell: Confining, desk: socket.socket) -> str:
    """Confine this process; returns its folder. Where that fails, it ends, and a call that waits for it is told."""
    try:
        os.setpgid(0, 0)  # signals to process groups reach nobody else; a session would cost more
        return _prepare(duty, cell)
    except BaseException as error:
        desk.shutdown(socket.SHUT_RD)  # from here on the server cannot hand it a call
        with contextlib.suppress(BlockingIOError), socket.socket(fileno=_handed(desk, socket.MSG_DONTWAIT)[0]) as call:
            call.send(Report(BROKEN, f"{type(error).__name__}: {error}").encoded())
        os._exit(1)


def _handed(desk: socket.socket, flags: int = 0) -> list[int]:
    """A call's file descriptors."""
    message, files, _, _ = socket.recv_fds(desk, MESSAGE_BYTES, 4, flags)
    if not message:
        os._exit(0)  # there will be none
    return files


def _open_files(desk: socket.socket) -> socket.socket:
    """Once there is a call: standard streams, and the channel, which takes the place of the desk."""
    call, channel, stdout, stderr = _handed(desk)
    os.dup2(stdout, 1)
    os.dup2(stderr, 2)
    os.dup2(channel, _CHANNEL, inheritable=False)
    for file in (call, channel, stdout, stderr):
        os.close(file)
    return desk


def _prepare(duty: Duty, cell: Confining) -> str:
    """Everything between the fork and the program; returns the program's folder."""
    _offer_to_the_oom_killer()
    box, processes = cell.confine(duty.start)
    work = box if duty.start.shell else _furnish(box)
    os.chdir(work)
    _set_limits(duty.start, duty.address_space, processes)
    kernel.drop_capabilities()
    if duty.start.guarded:  # it has what checks are made of
        kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    seccomp.install(processes=duty.may_fork)
    if not duty.start.shell:
        sys.path.insert(0, work)
    return work


def _furnish(box: str) -> str:
    """Make the folders of a program; returns its working directory."""
    for name in ("work", "home", "tmp", "shm"):
        os.mkdir(f"{box}/{name}", 0o700)
    os.environ["HOME"] = box + "/home"
    os.environ["TMPDIR"] = box + "/tmp"
    return box + "/work"


def _program(channel: socket.socket, folder: str) -> None:
    path = f"{folder}/{NAME}"
    source = _receive(channel, path)
    names = program.new_main()
    outcome = program.execute(source, path, names)
    flushed = program.finish(names)
    if isinstance(outcome.error, MemoryError):
        _report(channel, OUT_OF_MEMORY)
    if isinstance(outcome.error, KeyboardInterrupt):
        program.interrupt()
    os._exit(outcome.code if flushed or outcome.code else 120)


def _session(channel: socket.socket, folder: str, cpu: int) -> None:
    names = program.new_main()
    own = os.getpid()
    for number in range(1, sys.maxsize):
        path = f"{folder}/run_{number}.py"
        source = _receive(channel, path)
        program.open_streams()
        _renew_cpu(cpu)
        outcome = program.execute(source, path, names)
        program.flush()
        if os.getpid() != own:  # what a program has forked ends where the program does
            os._exit(outcome.code)
        kind = OUT_OF_MEMORY if isinstance(outcome.error, MemoryError) else FINISHED
        _report(channel, kind, str(outcome.code))


def _renew_cpu(seconds: int) -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    limit = math.ceil(used.ru_utime + used.ru_stime) + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))


def _receive(channel: socket.socket, path: str) -> bytes:
    """Code, which is written to a file; its stdin becomes this process's."""
    message, files, _, _ = socket.recv_fds(channel, MESSAGE_BYTES, 2)
    if not message:
        os._exit(0)  # nobody is there any more
    code, stdin = files
    os.dup2(stdin, 0)
    os.close(stdin)
    source = os.pread(code, os.fstat(code).st_size, 0)
    os.close(code)
    with open(path, "wb") as file:
        file.write(source)
    return source


def _report(channel: socket.socket, kind: bytes, detail: str = "") -> None:
    with contextlib.suppress(OSError):
        channel.send(Report(kind, detail).encoded(), socket.MSG_DONTWAIT)


def _offer_to_the_oom_killer() -> None:
    """Where the machine's memory runs out, programs go first."""
    file = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
    os.write(file, b"1000")
    os.close(file)
