"""What the tests of the sandbox share: a sandbox of a backend, and a look at the processes of this machine."""

import contextlib
import os

import pytest

from gem_sandbox import Limits, LocalSandbox
from gem_sandbox._choice import problems

LIMITS = Limits(wall=20.0)
"""A busy machine makes no test wrong."""


def available(backend: str) -> str:
    """It, where it works here."""
    if problem := problems(backend):
        pytest.skip(f"{backend}: {problem}")
    return backend


def sandbox_of(backend: str) -> LocalSandbox:
    return LocalSandbox(backend=available(backend), limits=LIMITS, allow_unsafe=True)


def children() -> set[int]:
    """Ids of this process's children, whichever thread has started them."""
    found: set[int] = set()
    for task in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError), open(f"/proc/self/task/{task}/children") as file:
            found |= {*map(int, file.read().split())}
    return found


def descendants(pid: int) -> set[tuple[int, str]]:
    """Ids of the processes below one, each with when it started."""
    parents: dict[int, list[int]] = {}
    started: dict[int, str] = {}
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        parents.setdefault(int(fields[1]), []).append(int(name))
        started[int(name)] = fields[19]
    found, new = set[tuple[int, str]](), [pid]
    while new:
        new = [child for one in new for child in parents.get(one, [])]
        found |= {(child, started[child]) for child in new}
    return found


def is_alive(pid: int, start: str) -> bool:
    """Whether this process is there, and not only to be waited for."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
    except OSError:
        return False
    return fields[19] == start and fields[0] != "Z"
