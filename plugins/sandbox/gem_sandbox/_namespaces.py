"""Namespaces of the server, and of each of its processes.

The server is the first process of a process namespace, so that all its processes end with it, and has a network
namespace in which there is nothing. It is no user of the machine's but "nobody", or who called it, and may make
namespaces only because it is in a user namespace of its own. Each program gets, inside of that:

- a process namespace, whose first process does nothing but be there: when it is killed, the kernel kills the rest;
- a mount namespace, with a file system of its own in memory and a /proc that shows its own processes; a shell's
  begins at the root (`root.py`);
- a user namespace, in which it has lost all capabilities by the time the program starts.
"""

from __future__ import annotations

import ctypes
import functools
import os
import signal
from collections.abc import Sequence
from typing import NoReturn

from gem_sandbox import kernel
from gem_sandbox._memory import children, id_in_proc
from gem_sandbox._root import WORK, Root
from gem_sandbox.launcher import map_user
from gem_sandbox.messages import Start
from gem_sandbox.view import BOX, PACKAGE_FOLDER

_NOBODY = 65534
_STACK_BYTES = 1 << 14
_BYTES_PER_FILE = 4096
_USER = 1000


def enter() -> None:
    """Go on as the first process of new namespaces; the process that was waits for it, and ends with it."""
    _lose_root()
    uid, gid = os.getuid(), os.getgid()
    spaces = kernel.CLONE_NEWNS | kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS | kernel.CLONE_NEWNET
    kernel.unshare(kernel.CLONE_NEWUSER | kernel.CLONE_NEWPID | kernel.CLONE_NEWCGROUP | spaces)
    map_user(uid, uid, gid, gid)
    kernel.set_host_name(b"sandbox")
    child = os.fork()
    if child:
        _wait(child)
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    kernel.mount("tmpfs", PACKAGE_FOLDER, "tmpfs", kernel.MS_RDONLY)


def _lose_root() -> None:
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)  # or /proc/self would still be root's


def _wait(child: int) -> NoReturn:
    os.closerange(0, 4096)
    os.waitpid(child, 0)
    os._exit(0)


class Cell:
    """A process namespace for a program or a shell, and what else it is confined by.

    Args:
        root: builds the file systems of shells.
    """

    def __init__(self, root: Root) -> None:
        self._root = root
        self._stack = ctypes.create_string_buffer(_STACK_BYTES)
        # It shares the server's memory and files, so that it costs next to nothing; it never touches either.
        sharing = kernel.CLONE_VM | kernel.CLONE_FILES
        self._first = kernel.clone_paused(sharing | kernel.CLONE_NEWPID | signal.SIGCHLD, self._stack)
        self.file = os.pidfd_open(self._first)
        """Can be read from once all of its processes have ended."""

    def fork(self) -> int:
        """As `os.fork`; the child is in the namespace."""
        kernel.setns(self.file, kernel.CLONE_NEWPID)
        child = os.fork()
        if child:
            kernel.setns(_own(), kernel.CLONE_NEWPID)
        return child

    def others(self) -> Sequence[int]:
        """Those that have lost their parents are children of its first process, which shares all with the server."""
        return [*children(id_in_proc(self.file))]

    def confine(self, start: Start) -> tuple[str, int]:
        """Confine this process to a user and a file system of its own; returns the folder it may write to, and the
        limit of processes."""
        uid, gid = os.getuid(), os.getgid()
        own = os.open("/proc/self", os.O_PATH | os.O_DIRECTORY)
        kernel.unshare(kernel.CLONE_NEWNS)
        if start.shell:
            self._root.enter(start.disk, guarded=start.guarded)
        else:
            self._fill_box(start.disk)
        user = 0 if start.shell else _USER
        kernel.unshare(kernel.CLONE_NEWUSER)
        map_user(user, uid, user, gid, own)
        os.close(own)
        kernel.prctl(kernel.PR_SET_SECUREBITS, kernel.SECUREBITS_NO_ROOT)
        return WORK if start.shell else BOX, start.processes

    def _fill_box(self, disk: int) -> None:
        harmless = kernel.MS_NOSUID | kernel.MS_NODEV
        files = disk // _BYTES_PER_FILE
        kernel.mount("tmpfs", BOX, "tmpfs", harmless, f"size={disk},nr_inodes={files},mode=700")
        try:
            # Read-only: a program could ask the kernel here to end others first when memory runs out.
            harmless |= kernel.MS_RDONLY | kernel.MS_NOEXEC
            kernel.mount("proc", "/proc", "proc", harmless, "subset=pid,hidepid=2")
        except OSError:  # as in containers that hide parts of their own
            kernel.mount("tmpfs", "/proc", "tmpfs", harmless)

    def kill(self) -> None:
        """End all of its processes."""
        os.kill(self._first, signal.SIGKILL)

    def reap(self) -> None:
        """Once they have ended."""
        os.waitpid(self._first, 0)
        os.close(self.file)


@functools.cache
def _own() -> int:
    """The server's process namespace."""
    return os.open("/proc/self/ns/pid", os.O_RDONLY)
