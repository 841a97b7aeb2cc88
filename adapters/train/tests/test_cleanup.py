"""A run leaves no process, no shared memory and no temporary folder behind, however it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gem_support.processes import processes_with
from gem_support.waiting import wait_until
from gem_train import _cleanup_process as cleanup_process
from gem_train._cleanup_process import RunProcesses, Stat
from gem_train.cleanup import MARK

pytestmark = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="cleaning up needs Linux")

PROGRAM = Path(__file__).with_name("leaving_program.py")
SHARED_MEMORY = Path("/dev/shm")


@contextmanager
def leaving(folder: Path, how: str = "waits") -> Iterator[tuple[subprocess.Popen[bytes], list[int], list[Path]]]:
    """The program, the processes that it leaves, and the files: shared memory, a semaphore, a temporary folder."""
    with subprocess.Popen([sys.executable, PROGRAM, folder, how], stderr=subprocess.PIPE) as program:
        try:
            wait_until(lambda: (folder / "left").exists() or program.poll() is not None, "the program did not start")
            memory, semaphore, *pids = (folder / "left").read_text().split()
            assert len(pids) == 3
            shared = [SHARED_MEMORY / memory, SHARED_MEMORY / semaphore]
            yield program, [*map(int, pids)], [*shared, folder / "scratch"]
            for path in shared:
                path.unlink(missing_ok=True)
        finally:
            program.kill()


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except OSError:
        return False


def wait_for_a_look(pid: int) -> None:
    """Until the process that cleans up after `pid` has looked at what `pid` has started, from now on."""
    [watcher] = processes_with(f"_cleanup_process.py\0{pid}\0")

    def reads() -> int:
        return int(Path(f"/proc/{watcher}/io").read_text().split("syscr:")[1].split()[0])

    # It reads a file or two of each process in a look, so this number of reads contains a whole look.
    before, enough = reads(), 5 * len([*Path("/proc").glob("[0-9]*")])
    wait_until(lambda: reads() >= before + enough, "nothing looked")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_what_a_program_started_ends_after_it(number: int, tmp_path: Path) -> None:
    with leaving(tmp_path) as (program, pids, files):
        wait_for_a_look(program.pid)
        assert all(map(lives, pids))
        assert all(path.exists() for path in files)
        program.send_signal(number)
        _, said = program.communicate(timeout=240)  # until the process that cleans up ends as well
    wait_until(lambda: not any(map(lives, pids)), "they are alive")
    assert not any(path.exists() for path in files)
    assert b"gem-core ended what this run had left behind: python" in said


@pytest.mark.parametrize("how", ["fails", "leaves at once"])
def test_a_program_may_end_before_it_is_looked_at(how: str, tmp_path: Path) -> None:
    with leaving(tmp_path, how) as (program, pids, _):
        program.communicate(timeout=240)
    wait_until(lambda: not any(map(lives, pids)), "they are alive")


def test_processes_of_others_stay(tmp_path: Path) -> None:
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True)
    with other, leaving(tmp_path, "fails") as (program, _, _):
        program.communicate(timeout=240)
        assert other.poll() is None
        other.communicate(b"\n", timeout=240)
    assert other.returncode == 0


def test_a_number_of_a_session_that_is_over_is_anybody_s(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {10: Stat("run", 1, 10, 100), 20: Stat("worker", 10, 20, 200)}
    monkeypatch.setattr(cleanup_process, "pids", lambda: [*table])
    monkeypatch.setattr(cleanup_process, "stat", table.get)
    run = RunProcesses(10, "mark")
    table[21] = Stat("child", 1, 20, 210)  # of the worker's session, whose parent is gone
    assert run.look().keys() == {10, 20, 21}
    del table[20]
    assert run.look().keys() == {10, 21}
    del table[21]
    run.look()
    table[20] = Stat("somebody else's", 1, 20, 900)
    assert run.look().keys() == {10}


def test_where_nothing_was_left_nothing_is_said() -> None:
    code = "from gem_train.cleanup import *; clean_up_after_this_process(); clean_up_after_this_process()"
    done = subprocess.run([sys.executable, "-c", code], stderr=subprocess.PIPE, check=True, timeout=240)
    assert done.stderr == b""


def test_a_run_inside_a_run_has_both_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MARK, "outer")
    code = "import os; from gem_train.cleanup import *; clean_up_after_this_process(); print(os.environ[MARK])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=240)
    outer, inner = done.stdout.split()
    assert outer == "outer" != inner


def test_it_is_no_child_that_a_program_would_wait_for() -> None:
    code = "import os; from gem_train.cleanup import *; clean_up_after_this_process(); os.wait()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=240)
    assert b"ChildProcessError" in done.stderr
