"""Runs a program in a process of its own, and prints what all processes of the program cost.

    python -m recipes.frameworks.supervisor LOG PROGRAM ARGUMENTS...

Orphans, for example those of Ray, become children of the supervisor. So it counts them, and none of them outlives it.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import subprocess
import sys
import time
from pathlib import Path

import psutil

PATIENCE = 120.0
"""Seconds that the processes of a program have to end after it."""
SUBREAPER = 36
"""Constant PR_SET_CHILD_SUBREAPER of Linux's prctl."""
PAUSE = 0.5
"""Seconds between two readings of CPU times."""


class Supervisor:
    """Counts the CPU seconds of all descendants of this process.

    Not from the kernel's sums over children, because Ray's daemon makes the kernel drop them.
    """

    def __init__(self) -> None:
        self._used: dict[psutil.Process, float] = {}

    def run(self, words: list[str], log: Path) -> dict[str, float]:
        """Run a program to its end. What is left of it after `PATIENCE`, or when this process is stopped, is killed.

        Returns:
            `code`, the program's exit code; `cpu`, seconds of all its processes; `left`, how many had to be killed.
        """
        ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
        try:
            with log.open("wb") as output:
                program = psutil.Popen(words, stdout=output, stderr=subprocess.STDOUT)
            while program.poll() is None:
                self._alive()
                time.sleep(PAUSE)
            deadline = time.monotonic() + PATIENCE
            while self._alive() and time.monotonic() < deadline:
                time.sleep(PAUSE)
            return {"code": program.returncode, "cpu": sum(self._used.values()), "left": len(self._alive())}
        finally:
            for process in self._alive():
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()

    def _alive(self) -> list[psutil.Process]:
        """The descendants that have not ended; their CPU times are recorded."""
        alive: list[psutil.Process] = []
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                self._used[process] = times.user + times.system
                if process.status() != psutil.STATUS_ZOMBIE:
                    alive.append(process)
        return alive


if __name__ == "__main__":
    print(json.dumps(Supervisor().run(sys.argv[2:], Path(sys.argv[1]))))
