"""The memory of a call: of all its processes together, and of what they hold in the kernel."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator
from itertools import accumulate

_PIPE_BYTES = 1 << 16
_DEFAULT_SOCKET_BYTES = 212_992
_OF_A_STATUS = re.compile(rb"^(?:RssAnon|RssShmem|VmSwap|VmPTE):\s*(\d+)", re.MULTILINE)
_TABLES = re.compile(rb"^VmPTE:\s*(\d+)", re.MULTILINE)
_FILE_BYTES = 1 << 14
_MAX_FILES = 256
"""Of a process, where this one may not look."""
_OF_A_ROLLUP = re.compile(rb"^(?:Pss_Anon|Pss_Shmem|SwapPss):\s*(\d+)", re.MULTILINE)


def socket_bytes(path: str = "/proc/sys/net/core/wmem_default") -> int:
    """The most that a socket can hold, with what the kernel adds to it; programs cannot change it."""
    most = _DEFAULT_SOCKET_BYTES
    with contextlib.suppress(OSError, ValueError), open(path) as file:  # not shown in a network namespace
        most = max(most, int(file.read()))
    return most + most // 4


class Memory:
    """Counts what processes use, as they use it.

    Args:
        socket: bytes that a socket counts for.
        inherited: bytes of the server that each of its processes shares until one of both writes to them.
    """

    def __init__(self, socket: int, inherited: int) -> None:
        self._socket = socket
        self._inherited = inherited

    def exceeded(self, processes: Iterable[int], limit: int) -> Iterator[bool]:
        """Whether these processes use more than a limit beyond what they have inherited: said after each of them, of
        those so far, for who has something else to do in between. Ends where it is true.

        Args:
            processes: ids, as in /proc.
            limit: bytes.
        """
        pids = [*map(_living, processes)]
        most = limit + self._inherited
        # Exact figures cost more. The others count twice what processes share, and each file as a full socket.
        for parts in (map(self._at_most, pids), self._parts(pids)):
            above = False
            for total in accumulate(parts):
                above = total > most
                yield False
                if above:
                    break
            if not above:
                return
        yield True

    def _at_most(self, pid: int) -> int:
        return (_kilobytes(f"/proc/{pid}/status", _OF_A_STATUS) or 0) + _number_of_files(pid) * self._socket

    def _parts(self, pids: Iterable[int]) -> Iterator[int]:
        """Bytes of one process after the other, with each socket and pipe that none before has."""
        seen: set[str] = set()
        for pid in pids:
            files = _files(pid)
            if files is None:
                yield _share(pid) + _number_of_files(pid) * self._socket
            else:
                new = files - seen
                seen |= new
                yield _share(pid) + sum(self._socket if file.startswith("socket:") else _PIPE_BYTES for file in new)


def inherited() -> int:
    """Bytes of this process that its forks share."""
    return _kilobytes("/proc/self/status", _OF_A_STATUS) or 0


def tree(roots: Iterable[int]) -> set[int]:
    """Ids of processes and of all below them."""
    found: set[int] = set()
    new = {*roots}
    while new:
        found |= new
        new = {child for pid in new for child in children(pid)} - found
    return found


def id_in_proc(pidfd: int) -> int:
    """The id that /proc has for a process, which may be another one than in the namespace of this process."""
    with open(f"/proc/self/fdinfo/{pidfd}", "rb", buffering=0) as file:
        found = re.search(rb"^Pid:\s*(-?\d+)", file.read(), re.MULTILINE)
    return int(found[1]) if found else -1


def children(pid: int) -> Iterator[int]:
    """Ids of a process's children."""
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/children", "rb", buffering=0) as file:
                yield from map(int, file.read().split())


def _living(pid: int) -> int:
    """The id of a thread that has the memory and files of a process: the first one may have ended before the others."""
    if _has_memory(pid):
        return pid
    with contextlib.suppress(OSError):
        return next(filter(_has_memory, map(int, os.listdir(f"/proc/{pid}/task"))), pid)
    return pid


def _has_memory(pid: int) -> bool:
    with contextlib.suppress(OSError), open(f"/proc/{pid}/statm", "rb", buffering=0) as file:
        return not file.read().startswith(b"0 ")
    return False


def _share(pid: int) -> int:
    """Bytes of a process; what several have in common counts for each in part."""
    rollup = _kilobytes(f"/proc/{pid}/smaps_rollup", _OF_A_ROLLUP)
    status = _TABLES if rollup is not None else _OF_A_STATUS
    return (rollup or 0) + (_kilobytes(f"/proc/{pid}/status", status) or 0)


def _kilobytes(path: str, numbers: re.Pattern[bytes]) -> int | None:
    """The sum of the numbers in a file, in bytes; `None` where this one may not look, or its process has ended."""
    with contextlib.suppress(OSError), open(path, "rb", buffering=0) as file:
        return sum(map(int, numbers.findall(file.read(_FILE_BYTES)))) * 1024
    return None


def _number_of_files(pid: int) -> int:
    """Also where this one may not look. The kernel says how many since 6.2."""
    with contextlib.suppress(OSError):
        if size := os.stat(f"/proc/{pid}/fd").st_size:
            return size
        files = _files(pid)
        return _MAX_FILES if files is None else len(files)
    return 0


def _files(pid: int) -> set[str] | None:
    """The pipes and sockets of a process, by name; `None` where this one may not look."""
    found: set[str] = set()
    folder = f"/proc/{pid}/fd"
    try:
        for number in os.listdir(folder):
            with contextlib.suppress(OSError):
                name = os.readlink(f"{folder}/{number}")
                if name.startswith(("socket:", "pipe:")):
                    found.add(name)
    except PermissionError:
        return None
    except OSError:  # it has ended
        pass
    return found
