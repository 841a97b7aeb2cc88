"""Programs without namespaces: the backend `limits`. Unsafe, though it takes from them what a process can give up.

Landlock and the filter of system calls do without privileges. Where the kernel has no Landlock, programs read all that
their user may read; they always see the machine's processes, and no limit counts all their files together.
"""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import tempfile
from collections.abc import Iterator

from gem_sandbox import kernel, landlock
from gem_sandbox._removal import remove
from gem_sandbox.messages import Start
from gem_sandbox.serving import Group
from gem_sandbox.view import DEVICES

_NOBODY = 65534
_programs: set[int] = set()
"""Ids of the server's children that are to live."""
_sweepers: set[int] = set()
"""Ids of those that take folders away."""


class Plain:
    """Confines programs as far as that goes without namespaces.

    Args:
        readable: files and folders that programs may read.
        folder: where their own folders are made.
    """

    def __init__(self, readable: list[str], folder: str) -> None:
        self._readable = readable
        self._folder = folder
        os.chmod(folder, 0o711)
        # Root's limit of processes does not hold; nobody's does, if nobody can use this Python.
        self._nobody = os.geteuid() == 0 and all(map(_open_to_all, readable))
        self.may_fork = os.geteuid() != 0 or self._nobody
        """Whether a program may start processes. Where they could not be counted, it may not."""
        # What a program leaves behind becomes this process's child when the program's process is gone.
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)

    def cell(self) -> PlainCell:
        """For a program."""
        return PlainCell(self._readable, self._folder, self._nobody)

    def close(self) -> None:
        """Leave nothing, after the last program."""
        for pid in _sweepers:
            os.waitpid(pid, 0)
        remove(self._folder)


class PlainCell(Group):
    """A folder for a program, and what it is confined by; see `namespaces.Cell`."""

    def __init__(self, readable: list[str], folder: str, nobody: bool) -> None:
        super().__init__()
        self._readable = readable
        self._nobody = nobody
        self._folder = tempfile.mkdtemp(dir=folder)

    def fork(self) -> int:
        """As `os.fork`."""
        pid = super().fork()
        if pid:
            _programs.add(pid)
        return pid

    def confine(self, start: Start) -> tuple[str, int]:
        """Confine this process; returns the folder it may write to, and the limit of processes."""
        if self._nobody:
            os.chown(self._folder, _NOBODY, _NOBODY)
            os.setgroups([])
            os.setresgid(_NOBODY, _NOBODY, _NOBODY)
            os.setresuid(_NOBODY, _NOBODY, _NOBODY)
        processes = _tasks(os.getuid()) + start.processes - 1  # the kernel counts all that this user has
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        landlock.restrict(self._readable, [self._folder, *DEVICES])
        return self._folder, processes

    def reap(self) -> None:
        """End what has left the program's group, and take the folder away."""
        _programs.discard(self._pid)
        while strays := [child for child in _children() if child not in _programs | _sweepers]:
            for child in strays:  # all, before one is waited for: the others could start more meanwhile
                os.kill(child, signal.SIGKILL)
            for child in strays:
                os.waitpid(child, os.WNOHANG)
        self._remove()
        super().reap()

    def _remove(self) -> None:
        """In a process of its own: a program's folder can take long, and other programs have clocks."""
        _sweepers.difference_update([pid for pid in _sweepers if os.waitpid(pid, os.WNOHANG)[0]])
        pid = os.fork()
        if pid == 0:
            remove(self._folder)
            os._exit(0)
        _sweepers.add(pid)


def _children() -> Iterator[int]:
    with open("/proc/thread-self/children") as file:
        yield from map(int, file.read().split())


def _open_to_all(path: str) -> bool:
    wanted = {path, *_parents(path)}
    return all(os.stat(one).st_mode & stat.S_IXOTH for one in wanted if os.path.isdir(one))


def _parents(path: str) -> Iterator[str]:
    while path != "/":
        path = os.path.dirname(path)
        yield path


def _tasks(uid: int) -> int:
    """Processes and threads of a user."""
    count = 0
    for name in filter(str.isdecimal, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.stat(f"/proc/{name}").st_uid == uid:
                count += len(os.listdir(f"/proc/{name}/task"))
    return count
