"""What confines grading processes: namespaces of the server, and what each process gives up before it sees an answer.

| by | a grading process has |
| --- | --- |
| seccomp | the calls of `gem_grading.system_calls`: no process, program, signal or socket, and no file to write to |
| Landlock | the files of `readable`, to read; where the kernel has no Landlock, no file at all |
| namespaces, where there are any | no process beside the server's, no network, nothing to share memory by |
| capabilities | none, also for root |
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import NoReturn

from gem_grading import system_calls
from gem_sandbox import kernel, landlock, seccomp
from gem_sandbox.launcher import map_user
from gem_sandbox.view import search_path

RULES = 4
"""The file descriptor of Landlock's rules, in the server and in what it forks."""
_SPACES = kernel.CLONE_NEWPID | kernel.CLONE_NEWNET | kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS
_LIBRARIES = (
    "/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache",
    "/nix/store", "/usr/share/zoneinfo",
)  # fmt: skip


def enter_namespaces() -> None:
    """Go on as the first process of new namespaces, where there are any; the process that was ends with it."""
    if not namespaces_allowed():
        return
    _leave()
    if child := os.fork():
        _wait(child)
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)


def steps() -> tuple[kernel.Prepared, ...]:
    """What a process does to confine itself, in this order, after what is imported now. It needs no new privileges.

    Raises:
        OSError: the kernel refuses the rules, or, by a step, to confine the process.
    """
    known = landlock.version() > 0
    if known:
        rules = landlock.ruleset(readable(), ())
        os.dup2(rules, RULES)
        os.close(rules)
    calls = system_calls.program(os.uname().machine, opening=known)
    return (*[landlock.enforcing(RULES)] * known, kernel.no_capabilities(), seccomp.filtering(calls))


def readable() -> list[str]:
    """Files and folders that functions may read: what is installed, and packages that were imported from elsewhere."""
    # Not from `sysconfig`, whose tables each fork would have to copy.
    python = [os.path.join(prefix, lib) for prefix in (sys.prefix, sys.base_prefix) for lib in ("lib", "lib64")]
    found = dict.fromkeys([os.path.dirname(os.__file__), *python, *search_path(), *_LIBRARIES, *_packages()])
    return [path for path in found if os.path.exists(path)]


def _packages() -> Iterator[str]:
    found: dict[str, object] = {**sys.modules}  # which need not be modules
    for name, module in found.items():
        if "." not in name and isinstance(module, ModuleType):
            yield from map(str, vars(module).get("__path__") or ())


def _leave() -> None:
    # Root needs no user namespace, in which others' files would be closed to it; what is forked has no capabilities.
    uid, gid = os.geteuid(), os.getegid()
    kernel.unshare(_SPACES | (kernel.CLONE_NEWUSER if uid else 0))
    if uid:
        map_user(uid, uid, gid, gid)


def namespaces_allowed() -> bool:
    """Whether this user may enter namespaces of its own here."""
    # Tried by another process: one that is halfway out cannot go back.
    child = os.fork()
    if not child:
        try:
            _leave()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def _wait(child: int) -> NoReturn:
    os.closerange(0, os.sysconf("SC_OPEN_MAX"))
    os.waitpid(child, 0)
    os._exit(0)
