"""How a program ends, with real processes in place of Oat's nodes; `full/test_program.py` runs all of Oat."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from runs import arguments

from gem_core.errors import AdapterError
from gem_oat import _program as program
from gem_oat._program import end, wait
from gem_oat._status import FOLDER, RunStatus, reported
from gem_support.waiting import wait_until
from gem_train.report import RunReport

Start = Callable[[str], psutil.Process]


@pytest.fixture
def status(tmp_path: Path) -> RunStatus:
    return RunStatus(tmp_path)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a process of a run that executes a line of Python."""
    started: list[psutil.Popen] = []
    preamble = "import os, subprocess, sys, time; from gem_oat._status import *; status = RunStatus.of_this_run();"

    def start_one(line: str) -> psutil.Process:
        started.append(
            psutil.Popen([sys.executable, "-c", f"{preamble} {line}"], env={**os.environ, FOLDER: str(tmp_path)})
        )
        return psutil.Process(started[-1].pid)

    yield start_one
    for process in started:
        with contextlib.suppress(psutil.NoSuchProcess):  # the test has waited for it
            process.kill()
            process.wait()


def test_a_learner_that_finishes_early_is_not_a_failure(status: RunStatus, start: Start):
    nodes = [
        start("time.sleep(600)"),  # an actor
        start("status.finish()"),
        start("time.sleep(8); status.finish()"),
    ]
    wait(nodes, status, 2, threading.Event())
    assert status.finished == {nodes[1].pid, nodes[2].pid}


def test_actors_may_end_before_the_last_learner_reports(status: RunStatus, start: Start):
    wait([start("pass"), start("time.sleep(2); status.finish()")], status, 1, threading.Event())


def test_the_first_error_is_raised(status: RunStatus, start: Start):
    nodes = [start("time.sleep(600)"), start("status.fail(ValueError('first')); status.fail(ValueError('second'))")]
    with pytest.raises(AdapterError, match=r"(?s)the others were ended.*ValueError: first") as raised:
        wait(nodes, status, 1, threading.Event())
    assert "second" not in str(raised.value)


def test_a_process_that_ends_without_a_report_is_noticed(status: RunStatus, start: Start):
    nodes = [start("time.sleep(600)"), start("os.kill(os.getpid(), 9)")]
    with pytest.raises(AdapterError, match="ended without reporting an error"):
        wait(nodes, status, 1, threading.Event())


def test_a_killed_process_is_reported_first(status: RunStatus, start: Start):
    killed = start("os.kill(os.getpid(), 9)")
    psutil.wait_procs([killed], 60)
    nodes = [killed, start("status.fail(RuntimeError('connection closed by peer'))")]
    with pytest.raises(AdapterError, match=r"(?s)ended without reporting an error.*connection closed by peer"):
        wait(nodes, status, 1, threading.Event())


def test_a_stopped_program_reports_it(status: RunStatus, start: Start):
    told = threading.Event()
    told.set()
    with pytest.raises(AdapterError, match="was stopped before training was over"):
        wait([start("status.fail(RuntimeError('lost the others'))")], status, 1, told)


def test_all_processes_of_a_run_are_ended_and_no_other(status: RunStatus, start: Start):
    shell = start("subprocess.run([sys.executable, '-c', 'import time; time.sleep(600)']); time.sleep(1)")
    orphan = "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)"
    start(orphan).wait(120)
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    try:
        wait_until(lambda: len(status.processes) == 3)
        end(status, [shell])
        assert status.processes == []
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_an_error_is_reported_and_raised(status: RunStatus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    @reported
    def broken() -> None:
        raise RuntimeError("the level is gone")

    monkeypatch.setenv(FOLDER, str(tmp_path))
    with pytest.raises(RuntimeError):
        broken()
    assert status.error is not None
    assert "the level is gone" in status.error
    assert {one.name for one in tmp_path.iterdir()} == {"error", f"error.{os.getpid()}"}
    assert status.failed == {os.getpid()}


def test_after_ctrl_c_the_curve_is_drawn(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The learner is a process of Launchpad, which is killed with this one."""

    def stopped(*_: object) -> None:
        RunReport(9, "test", live=False, folder=tmp_path).update(1, {"episode/success": 0.5})
        raise AdapterError("Oat's program was stopped")

    monkeypatch.setattr(program, "_launch", stopped)
    with pytest.raises(AdapterError, match="was stopped"):
        program.run(arguments(model, report=str(tmp_path)))
    assert (tmp_path / "curve.png").read_bytes()[:4] == b"\x89PNG"
