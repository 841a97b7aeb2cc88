"""The process of a shell: keeps a bash, and does what the caller asks for through the channel.

    {"do": "run", "command": ..., "seconds": ..., "folder": ..., "variables": {...}}    -> {"code": ..., ...}
    {"do": "write"}, with packed files                                                  -> {}
    {"do": "read", "roots": [...], "left_out": [...], "most": ...}, with a file to fill -> {}
    {"do": "settle"}                                                                    -> {}

An answer `{"problem": ...}` says why it could not be done. What commands write goes to stdout, their errors too.

The bash is interactive, because only an interactive one survives an interrupt and drops the command. It reads from a
pipe: a command as one word for `eval`, and on the next line what reports its exit code through another pipe.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import select
import shlex
import signal
import socket
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from gem_sandbox import _files as files
from gem_sandbox import kernel
from gem_sandbox._root import HOME
from gem_sandbox.messages import FINISHED, MESSAGE_BYTES, Report

_BASH = "/bin/bash"
_STATUS = 9
"""The file descriptor through which a bash reports. Commands do not have it."""
_FIRST_LINE = "PS1= PS2=; set +H +o history\n"
"""The prompts are set before, too, but would be passed on from there."""
_PAUSES = (0.2, 1.0, 2.0, 4.0)
"""Seconds after each interrupt of a late command, and once more after what it has started was ended. A busy machine may
need seconds to tell a bash of an interrupt, so a bash that seems to ignore them is not ended sooner."""
_SIGNALS = [signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ]
"""Signals that Python ignores or handles, and commands do not."""
_VARIABLES = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": HOME,
    "USER": "root",
    "SHELL": _BASH,
    "LANG": "C.UTF-8",
    "TERM": "dumb",
    "PS1": "",
    "PS2": "",
}


def serve(channel: socket.socket, cpu: int, fixed: Sequence[str]) -> NoReturn:
    """Until nobody is there any more.

    Args:
        channel: brings requests.
        cpu: seconds that one process may use.
        fixed: paths that are never read.
    """
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)  # what has lost its parent would stay and count after its end
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 1))
    console = Console(fixed)
    while True:
        message, received, _, _ = socket.recv_fds(channel, MESSAGE_BYTES, 2)
        if not message:
            os._exit(0)
        for file in received:
            os.set_inheritable(file, False)  # or a bash that is started now would have it
        request, data = received
        try:
            answer = console.answer(json.loads(_content(request)), data)
        except (OSError, files.DoesNotFit, MemoryError) as error:
            answer = {"problem": f"{type(error).__name__}: {error}"}
        for file in received:
            os.close(file)
        channel.send(Report(FINISHED, json.dumps(answer)).encoded())


class Console:
    """A bash, and what surrounds it."""

    def __init__(self, fixed: Sequence[str]) -> None:
        self._fixed = fixed
        self._children = Children()
        self._bash: Bash | None = None

    def answer(self, request: Mapping[str, Any], data: int) -> dict[str, Any]:
        """Do what is asked for.

        Args:
            request: see the module.
            data: file descriptor of the files that come along or are asked for.
        """
        what = request["do"]
        if what == "run":
            return self._run(request)
        if what == "write":
            files.write(_content(data))
        elif what == "read":
            for piece in files.read(request["roots"], [*self._fixed, *request["left_out"]], request["most"]):
                _write(data, piece)
        elif what == "settle":
            self._settle()
        return {}

    def _run(self, request: Mapping[str, Any]) -> dict[str, Any]:
        if self._bash is None:
            self._bash = Bash(request["folder"], request["variables"], self._children)
        before = _processes()
        code = self._bash.run(request["command"], request["seconds"])
        late = code is None and not self._bash.ended
        if late:
            code = self._bash.interrupt(before)
            if code is None:
                self._children.kill_all()
        if self._bash.ended or code is None:
            self._bash.close()
            self._bash = None
        return {"code": None if late else code, "late": late, "new_shell": self._bash is None}

    def _settle(self) -> None:
        """End all processes but this one."""
        self._children.kill_all()
        if self._bash is not None:
            self._bash.close()
            self._bash = None


class Children:
    """The children of this process: a bash, and processes that have lost their parents. Each counts until it is waited
    for, so that is done at once."""

    def __init__(self) -> None:
        self._statuses: dict[int, int] = {}
        self._bash: int | None = None
        signal.signal(signal.SIGCHLD, self._ended)

    def spawn(self, *arguments: Any, **options: Any) -> int:
        """Start a bash, as `os.posix_spawn`."""
        self._statuses, self._bash = {}, None  # it may end at once
        self._bash = os.posix_spawn(*arguments, **options)
        return self._bash

    def wait(self, pid: int) -> int:
        """The status of the latest bash, which has ended or is about to."""
        with contextlib.suppress(ChildProcessError):
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        self._reap()
        return self._statuses.get(pid, 0)

    def kill_all(self) -> None:
        """End all processes but this one, whatever they start meanwhile."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)  # at one moment
        with contextlib.suppress(ChildProcessError):
            while True:
                os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
                self._reap()

    def _ended(self, number: int, frame: object) -> None:
        self._reap()

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if self._bash in (None, pid):
                    self._statuses[pid] = status


class Bash:
    """One bash.

    Args:
        folder: where it starts.
        variables: of its environment, beside the usual ones.
        children: waits for it.
    """

    def __init__(self, folder: str, variables: Mapping[str, str], children: Children) -> None:
        self._children = children
        theirs, self._input = os.pipe()
        self._status, reports = os.pipe()
        self.ended = False
        """Whether it has ended by itself."""
        self._number = 0
        self._reported = b""
        with contextlib.suppress(OSError):  # then where the last one was started
            os.makedirs(folder, exist_ok=True)
            os.chdir(folder)
        actions = [
            (os.POSIX_SPAWN_DUP2, theirs, 0),
            (os.POSIX_SPAWN_DUP2, reports, _STATUS),
            # What it says of itself: at its start, and of a request that an interrupt has cut in two.
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ]
        try:
            self._pid = children.spawn(
                _BASH,
                ["bash", "--norc", "--noprofile", "--noediting", "-i"],
                {**_VARIABLES, **variables},
                file_actions=actions,
                setpgroup=0,
                setsigdef=_SIGNALS,
            )
        except OSError:  # background jobs may have used up the processes
            os.close(self._input)
            os.close(self._status)
            raise
        finally:
            os.close(theirs)
            os.close(reports)
        os.set_blocking(self._input, False)
        self._send(_FIRST_LINE.encode())

    def run(self, command: str, seconds: float) -> int | None:
        """Run a command.

        Returns:
            Its exit code; `None` if it takes longer, or if the bash ended without one.
        """
        line = f"eval {shlex.quote(command)} </dev/null {_STATUS}>&- 2>&1\n"
        deadline = time.monotonic() + seconds
        self._send(line.encode("utf-8", "surrogateescape") + self._request(), seconds)
        return self._wait(self._number, deadline - time.monotonic())

    def interrupt(self, before: Iterable[int]) -> int | None:
        """End the command that is under way.

        Args:
            before: processes that were there before it; they stay.

        Returns:
            As `run`.
        """
        first = self._number + 1
        for pause in _PAUSES:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._pid, signal.SIGINT)
            # With an interrupt goes all that it was to read.
            self._send(self._request())
            code = self._wait(first, pause)
            _kill(_processes() - {*before, self._pid})
            if code is None and not self.ended:
                # The next interrupt could cut a request that is being read, so the answer has time to come.
                code = self._wait(first, pause)
            if code is not None or self.ended:
                return code
        return None

    def close(self) -> None:
        """End it."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        self._children.wait(self._pid)
        os.close(self._input)
        os.close(self._status)

    def _request(self) -> bytes:
        """Asks for the exit code of what came before."""
        self._number += 1
        # With few quotes, as half a pair would take the requests after it for text.
        return f'builtin printf %d\\ %d\\\\n {self._number} "$?" >&{_STATUS}\n'.encode()

    def _send(self, text: bytes, seconds: float = 0.0) -> None:
        """Write to the bash; only a part where it does not read the rest in time, so that it does not answer either: a
        command may have stopped it."""
        deadline = time.monotonic() + seconds
        poll = select.poll()
        poll.register(self._input, select.POLLOUT)
        rest = memoryview(text)
        with contextlib.suppress(BrokenPipeError):  # its end is noticed later
            while rest:
                with contextlib.suppress(BlockingIOError):
                    rest = rest[os.write(self._input, rest) :]
                left = deadline - time.monotonic()
                if rest and (left <= 0 or not poll.poll(left * 1000)):
                    return

    def _wait(self, number: int, seconds: float) -> int | None:
        """Wait for the answer to a request, or to one after it."""
        deadline = time.monotonic() + seconds
        poll = select.poll()
        try:
            process = os.pidfd_open(self._pid)
        except ProcessLookupError:  # something in the background has ended it between two commands
            return self._end()
        try:
            poll.register(process, select.POLLIN)
            poll.register(self._status, select.POLLIN)
            while (left := deadline - time.monotonic()) > 0:
                ready = dict(poll.poll(left * 1000))
                if self._status in ready:
                    if not (text := os.read(self._status, MESSAGE_BYTES)):
                        poll.unregister(self._status)  # it has become something else, by `exec`
                    if (code := self._read(text, number)) is not None:
                        return code
                elif process in ready:
                    return self._end()
        finally:
            os.close(process)
        return None

    def _read(self, text: bytes, number: int) -> int | None:
        *lines, self._reported = (self._reported + text).split(b"\n")
        for line in lines:
            answered, _, code = line.partition(b" ")
            if answered.isdigit() and code.isdigit() and int(answered) >= number:
                return int(code)
        return None

    def _end(self) -> int:
        self.ended = True
        code = os.waitstatus_to_exitcode(self._children.wait(self._pid))
        return code if code >= 0 else 128 - code


def _processes() -> set[int]:
    """All but this one and the namespace's first."""
    return {int(name) for name in os.listdir("/proc") if name.isdecimal()} - {1, os.getpid()}


def _kill(processes: Iterable[int]) -> None:
    for pid in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _content(file: int) -> bytes:
    return os.pread(file, os.fstat(file).st_size, 0)


def _write(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]
