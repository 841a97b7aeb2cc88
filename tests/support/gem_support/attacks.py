"""Attacks of an environment on the process it lives in, for tests and `benchmarks/hostile_environments.py`."""

from __future__ import annotations

import os
import resource
import signal
import stat
import time
from pathlib import Path


def sockets() -> list[int]:
    """The sockets of this process."""
    found: list[int] = []
    for name in os.listdir("/proc/self/fd"):
        try:
            if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                found.append(int(name))
        except OSError:  # the folder's own
            pass
    return found


def say(*data: bytes) -> None:
    """Write to the vector."""
    for file in sockets():
        for one in data:
            os.write(file, one)


def closes_descriptors() -> None:
    os.closerange(3, 64)


def closes_descriptors_and_opens_others() -> None:
    os.closerange(3, 64)
    for _ in range(61):
        os.open(os.devnull, os.O_RDWR)


def kills_its_group() -> None:
    os.killpg(0, signal.SIGTERM)


def has_an_alarm() -> None:
    signal.setitimer(signal.ITIMER_REAL, 0.001)
    time.sleep(60)


def may_use_more_memory(size: int) -> None:
    """Limit this process to `size` more bytes of memory."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + size, resource.RLIM_INFINITY))


def takes_all_memory() -> None:
    may_use_more_memory(1 << 26)
    taken: list[bytearray] = []
    while True:
        taken.append(bytearray(1 << 20))
