"""Runs that are killed during calls of their environments; used by killed.py of each adapter.

The environment starts a child in a separate session, and then does not return. It does so after the first update, when
the run has started all its processes.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from gem_support.training_run import SECONDS, WITHOUT_THE_CLONE, _kill, left_over

DRIVER = "driver"
ALLOWED = 15.0
"""Seconds after the end of a run until nothing of it may be left."""
ENV_ID = "test:Stuck-v0"
MODULE = "stuck_environment"
CODE = f"""
import os, subprocess, time
from pathlib import Path
import gem_core
from gem_games.corridor import Corridor

class Stuck(Corridor):
    def step(self, action):
        folder = Path(os.environ["GEM_SPY"])
        if (folder / "begin").exists():
            subprocess.Popen(["sleep", "3600"], start_new_session=True)
            (folder / f"stuck-{{os.getpid()}}").touch()
            time.sleep(3600)
        return super().step(action)

gem_core.register({ENV_ID!r}, Stuck)
"""
LAUNCH = f"import {MODULE}, runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name='__main__')"


class KilledRun:
    """A run whose environments are in the middle of calls."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path) -> None:
        self.process = process
        self.folder = folder
        self._memory: set[str] = set()

    @property
    def processes(self) -> dict[int, str]:
        """The command lines of the run's processes, by id."""
        return left_over(f"GEM_SPY={self.folder}")

    def kill(self, victim: str) -> None:
        """Kill the driver, or else a process with such a command line, and check that nothing is left of the run."""
        processes = self.processes
        found = [pid for pid, name in processes.items() if re.search(victim, name)]
        assert found or victim == DRIVER, f"no {victim} among {sorted(processes.values())}"
        self._memory = _mapped(processes)
        os.kill(self.process.pid if victim == DRIVER else found[0], signal.SIGKILL)
        print(f"{victim}: nothing left after {self._seconds_until_nothing_is_left():.1f} s")

    def _seconds_until_nothing_is_left(self) -> float:
        self.process.wait(SECONDS)
        ended = time.monotonic()
        while (left := self.processes) and time.monotonic() < ended + 4 * ALLOWED:
            time.sleep(0.2)
        seconds = time.monotonic() - ended
        assert not left, f"left after {seconds:.0f} s: {left}"
        assert seconds < ALLOWED
        living = [int(path.name) for path in Path("/proc").glob("[0-9]*")]
        assert self._memory & {*os.listdir("/dev/shm")} - _mapped(living) == set()
        return seconds


@contextmanager
def stuck(
    command: Sequence[str], folder: Path, environment: Mapping[str, str] = WITHOUT_THE_CLONE
) -> Iterator[KilledRun]:
    """Run an example until its environments do not return.

    Args:
        command: the example and its arguments, which write the report to `folder / "report"`.
        folder: an empty one.
        environment: variables of its environment.
    """
    (folder / f"{MODULE}.py").write_text(textwrap.dedent(CODE))
    with tempfile.TemporaryDirectory(prefix="t", ignore_cleanup_errors=True) as temporary:
        own = {"PYTHONPATH": str(folder), "GEM_SPY": str(folder), "TMPDIR": temporary}
        with (folder / "output.txt").open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-c", LAUNCH, *command],
                cwd=folder,
                env={**os.environ, **environment, **own},
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        run = KilledRun(process, folder)
        try:
            _wait(run, lambda: (folder / "report" / "metrics.jsonl").exists())
            (folder / "begin").touch()
            _wait(run, lambda: any(folder.glob("stuck-*")))
            yield run
        finally:
            for pid in [process.pid, *run.processes]:
                _kill(pid)
            process.wait()


def _mapped(pids: Iterable[int]) -> set[str]:
    """The shared memory that these processes use."""
    found: set[str] = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            found |= {*re.findall(r"/dev/shm/(\S+)", Path(f"/proc/{pid}/maps").read_text())}
    return found


def _wait(run: KilledRun, condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():
        output = (run.folder / "output.txt").read_text(errors="replace")[-3000:]
        assert run.process.poll() is None, output
        assert time.monotonic() < deadline, output
        time.sleep(0.2)
