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

    def exceeded(self, roots: Iterable[int], limit: int) -> bool:
        """Whether these processes, with all below them, use more than a limit beyond what they have inherited.

        Args:
            roots: ids, as in /proc.
            limit: bytes.
        """
        pids = [*tree(roots)]
        most = limit + self._inherited
        # Exact figures cost more. The others count twice what processes share, and each file as a full socket.
        return _is_above(most, map(self._at_most, pids)) and _is_above(most, self._parts(pids))

    def _at_most(self, pid: int) -> int:
        with contextlib.suppress(OSError):  # it has ended
            return _kilobytes(f"/proc/{pid}/status", _OF_A_STATUS) + _number_of_files(pid) * self._socket
        return 0

    def _parts(self, pids: Iterable[int]) -> Iterator[int]:
        """Bytes of one process after the other, and of each socket and pipe."""
        seen: set[str] = set()
        for pid in pids:
            yield _share(pid)
            for file in _files(pid):
                if file not in seen:
                    seen.add(file)
                    yield self._socket if file.startswith("socket:") else _PIPE_BYTES


def inherited() -> int:
    """Bytes of this process that its forks share."""
    return _kilobytes("/proc/self/status", _OF_A_STATUS)


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


def _is_above(most: int, parts: Iterable[int]) -> bool:
    """Whether the sum of the parts is; those that come after it has become so are not looked at."""
    return any(total > most for total in accumulate(parts))


def _share(pid: int) -> int:
    """Bytes of a process; what several have in common counts for each in part."""
    try:
        return _kilobytes(f"/proc/{pid}/smaps_rollup", _OF_A_ROLLUP) + _kilobytes(f"/proc/{pid}/status", _TABLES)
    except PermissionError:  # of another user, where this one may not look
        return _kilobytes(f"/proc/{pid}/status", _OF_A_STATUS)
    except OSError:
        return 0


def _kilobytes(path: str, numbers: re.Pattern[bytes]) -> int:
    """The sum of the numbers in a file, in bytes."""
    with open(path, "rb", buffering=0) as file:
        return sum(map(int, numbers.findall(file.read(_FILE_BYTES)))) * 1024


def _number_of_files(pid: int) -> int:
    # The kernel says how many since 6.2.
    return os.stat(f"/proc/{pid}/fd").st_size or sum(1 for _ in _files(pid))


def _files(pid: int) -> Iterator[str]:
    """The pipes and sockets of a process, by name."""
    folder = f"/proc/{pid}/fd"
    with contextlib.suppress(OSError):
        for number in os.listdir(folder):
            with contextlib.suppress(OSError):
                name = os.readlink(f"{folder}/{number}")
                if name.startswith(("socket:", "pipe:")):
                    yield name
