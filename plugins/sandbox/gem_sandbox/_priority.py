"""The priority of a call: its processes and threads together are to weigh as one process, however many are busy."""

from __future__ import annotations

import contextlib
import functools
import math
import os
import re
from collections.abc import Iterable, Iterator

_LOWEST = 19
_STEP = 1.25
"""What the kernel makes of one step: a process's weight is divided by it."""
_STATUS_BYTES = 1 << 13
_BUSY = re.compile(rb"^State:\s*R", re.MULTILINE)
_IDS = re.compile(rb"^NSpid:\s*(.*)", re.MULTILINE)


def steps(busy: int) -> int:
    """How many nice levels each of `busy` threads has to go down for all together to weigh as one."""
    return min(_LOWEST, math.ceil(math.log(max(busy, 1), _STEP)))


class Priority:
    """Of one call. It only ever sinks: raising it needs a privilege, and programs have none. What they start inherits
    it. A call with one busy thread keeps the priority of the server."""

    def __init__(self) -> None:
        self._steps = 0
        self._busy = 1
        """At the last time."""

    def adjust(self, pids: Iterable[int]) -> Iterator[bool]:
        """Count the threads that run or wait for a core, and lower all where they are more than ever before, twice in
        succession: a thread that starts another one is not busy for long. Yields now and then, for who has something
        else to do in between.

        Args:
            pids: all its processes, as in /proc.
        """
        tasks = [f"/proc/{pid}/task/{task}" for pid in pids for task in _names(f"/proc/{pid}/task")]
        if len(tasks) == 1 and not self._steps:
            self._busy = 1
            return
        busy, ids = 0, list[int]()
        for task in tasks:
            status = _read(f"{task}/status")
            busy += bool(_BUSY.search(status))
            ids += _own_id(status)
            yield False
        self._steps = max(self._steps, steps(min(busy, self._busy)))
        self._busy = busy
        if self._steps:
            nice = min(_LOWEST, os.getpriority(os.PRIO_PROCESS, 0) + self._steps)
            for one in ids:
                _lower(one, nice)
                yield False


def _lower(task: int, nice: int) -> None:
    with contextlib.suppress(OSError):  # it has ended
        if os.getpriority(os.PRIO_PROCESS, task) < nice:
            os.setpriority(os.PRIO_PROCESS, task, nice)


def _own_id(status: bytes) -> list[int]:
    """The id that a thread has where this process is; /proc may be that of a namespace above."""
    return _ids(status)[_depth() - 1 : _depth()]


@functools.cache
def _depth() -> int:
    """Number of ids that this process has in /proc, one for each namespace."""
    return len(_ids(_read("/proc/self/status")))


def _ids(status: bytes) -> list[int]:
    found = _IDS.search(status)
    return [*map(int, found[1].split())] if found else []


def _names(folder: str) -> list[str]:
    with contextlib.suppress(OSError):
        return os.listdir(folder)
    return []


def _read(path: str) -> bytes:
    with contextlib.suppress(OSError), open(path, "rb", buffering=0) as file:
        return file.read(_STATUS_BYTES)
    return b""
