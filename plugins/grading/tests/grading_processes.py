"""The processes of grading, looked for from outside."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path


def template(owner: int | None = None) -> int:
    """The server of a process that has graded; where there are namespaces, another process waits for it."""
    (server,) = [pid for pid in children(owner or os.getpid()) if "gem_grading._server" in _about(pid, "cmdline")]
    first = [pid for pid in children(server) if _names(pid)[-1:] == ["1"]]
    return first[0] if first else server


def children(pid: int) -> list[int]:
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        found += map(int, _read(task).split())
    return found


def below(pid: int) -> Iterator[int]:
    """All that have come of a process, and still are there."""
    for child in children(pid):
        yield child
        yield from below(child)


def alive(pid: int) -> bool:
    """A process runs; zombies do not."""
    return (_about(pid, "stat").rpartition(")")[2].split() or ["X"])[0] not in "ZX"


def _names(pid: int) -> list[str]:
    """Its numbers, from this namespace to its own."""
    return _about(pid, "status").partition("NSpid:")[2].partition("\n")[0].split()


def _about(pid: int, what: str) -> str:
    return _read(Path(f"/proc/{pid}/{what}"))


def _read(path: Path) -> str:
    """A file of a process; empty where the process has ended meanwhile."""
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
