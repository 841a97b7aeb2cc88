"""A script that waits for the end of a process and ends the processes that it left behind; see `cleanup`.

    python -I -S cleanup_process.py PID MARK [FOLDER ...]

The script imports nothing from this project, so that it starts fast and stays small.
"""

import contextlib
import os
import select
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

LOOK_SECONDS = 1.0
"""Interval of the search for descendants. A descendant is found through its parent, so only while the parent lives."""
LOOKS_FOR_A_FILE = 10
"""Number of checks after which a file in shared memory counts as another program's."""
GRACE_SECONDS = 5.0
"""Time for processes to end by themselves after the run."""
KILL_SECONDS = 5.0
TRACKER = b"multiprocessing.resource_tracker"
"""A process that removes shared memory when its users are gone, and then ends."""
SHARED_MEMORY = Path("/dev/shm")


class Seen(NamedTuple):
    """A process. Its start time distinguishes it from a later process with the same id."""

    pid: int
    start: int


class Stat(NamedTuple):
    """The fields of `/proc/PID/stat`."""

    name: str
    parent: int
    session: int
    start: int


def main(pid: int, mark: str, folders: Iterable[str]) -> None:
    """Wait for the end of process `pid`, then end what remains.

    Args:
        pid: the process.
        mark: a word in the environment of the processes that it started.
        folders: temporary folders, which are removed at last.
    """
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        watched = None
    run = RunProcesses(pid, mark)
    poll = select.poll()
    if watched is not None:
        poll.register(watched, select.POLLIN)
        while not poll.poll(1000 * LOOK_SECONDS):
            run.look()
    killed = run.end()
    run.remove_shared_memory()
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    if killed:
        print(f"gem-core ended what this run had left behind: {', '.join(sorted(killed))}", file=sys.stderr)


class RunProcesses:
    """The processes of a run: the descendants of its first process, and processes with its mark.

    Args:
        pid: the first process.
        mark: see above.
    """

    def __init__(self, pid: int, mark: str) -> None:
        self._mark = mark.encode()
        self._known: set[Seen] = set()
        self._sessions: set[int] = set()
        self._files_before = names(SHARED_MEMORY)
        self._files: set[str] = set()
        self._looked: Counter[str] = Counter()
        first = stat(pid)
        if first:
            self._known.add(Seen(pid, first.start))
        self.look()

    def look(self) -> dict[int, Stat]:
        """Find new descendants and their shared memory. Returns the processes that are alive."""
        present = {pid: found for pid in pids() if pid != os.getpid() and (found := stat(pid))}
        living = {pid for pid, start in self._known if pid in present and present[pid].start == start}
        while new := {pid for pid, one in present.items() if pid not in living and self._is_ours(one, living)}:
            living |= new
            self._known |= {Seen(pid, present[pid].start) for pid in new}
        led = {one.session for pid, one in present.items() if pid in living and one.session == pid}
        # A session without a process is over, and another program's may get its number.
        self._sessions = led | self._sessions & {one.session for one in present.values()}
        found = {pid: present[pid] for pid in living}
        self._look_for_files(found)
        return found

    def end(self) -> set[str]:
        """End the remaining processes after the first one is gone. Returns the names of those that were killed."""
        self._marked()
        wait(lambda: not self.look(), GRACE_SECONDS)
        self._marked()
        killed: set[str] = set()

        def gone() -> bool:
            left = self.look()
            working = {pid: one for pid, one in left.items() if TRACKER not in read(f"/proc/{pid}/cmdline")}
            for pid, one in working.items():
                killed.add(one.name)
                kill(pid)
            return not working

        wait(gone, KILL_SECONDS)
        wait(lambda: not self.look(), KILL_SECONDS)
        for pid in self.look():
            kill(pid)
        return killed

    def remove_shared_memory(self) -> None:
        """Remove the run's shared memory that no process uses."""
        left = self._files & names(SHARED_MEMORY)
        for name in left - (in_use(left, pids()) if left else set()):
            with contextlib.suppress(OSError):  # another process removed it
                (SHARED_MEMORY / name).unlink()

    def _is_ours(self, one: Stat, living: set[int]) -> bool:
        return one.parent in living or one.session in self._sessions

    def _marked(self) -> None:
        """Find processes that left their parent before they were seen."""
        for pid in pids():
            if pid != os.getpid() and self._mark in read(f"/proc/{pid}/environ"):
                found = stat(pid)
                if found:
                    self._known.add(Seen(pid, found.start))

    def _look_for_files(self, processes: dict[int, Stat]) -> None:
        # Reading the mappings of 50 processes takes 100 ms, so files of other programs are soon ignored.
        new = names(SHARED_MEMORY) - self._files_before - self._files
        if new:
            self._files |= in_use(new, processes)
        self._looked.update(new)
        self._files_before |= {name for name in new if self._looked[name] == LOOKS_FOR_A_FILE}


def pids() -> list[int]:
    """All processes."""
    return [int(name) for name in names(Path("/proc")) if name.isdigit()]


def stat(pid: int) -> Stat | None:
    """The data of a process; `None` if it has ended."""
    head, _, rest = read(f"/proc/{pid}/stat").rpartition(b") ")
    fields = rest.split()
    if len(fields) < 20 or fields[0] in (b"Z", b"X"):
        return None
    name = head.partition(b"(")[2].decode(errors="replace")
    return Stat(name, int(fields[1]), int(fields[3]), int(fields[19]))


def in_use(files: set[str], processes: Iterable[int]) -> set[str]:
    """Those of these files in shared memory that the processes have mapped, under whatever name.

    A semaphore gets its name after it was mapped, so its number counts.
    """
    start = f" {SHARED_MEMORY}/".encode()
    lines = [line for pid in processes for line in read(f"/proc/{pid}/maps").splitlines() if start in line]
    numbers = {int(line.split(maxsplit=5)[4]) for line in lines}
    return {name for name in files if number(SHARED_MEMORY / name) in numbers}


def number(path: Path) -> int:
    """The number of a file; -1 if there is none."""
    try:
        return path.stat().st_ino
    except OSError:
        return -1


def names(folder: Path) -> set[str]:
    """The names in a folder."""
    try:
        return {*os.listdir(folder)}
    except OSError:
        return set()


def read(path: str) -> bytes:
    """A file of /proc; empty if it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def kill(pid: int) -> None:
    """Kill a process that may be gone already."""
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)


def wait(condition: Callable[[], bool], seconds: float) -> None:
    """Wait until a condition holds, up to a time limit."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.2)


if __name__ == "__main__" and os.fork() == 0:  # so it is no child of the process, which may wait for all of its own
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
