"""The study `frameworks`: programs in other environments, and its short run in TRL."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from gem_core import make
from gem_support.waiting import wait_until
from recipes.command import main
from recipes.frameworks.corridor import DENSE, NEARER
from recipes.frameworks.declared import FRAMEWORKS, STUDY
from recipes.frameworks.page import page
from recipes.frameworks.programs import ROOT, python_of, run
from recipes.results import RecipeError, declared, read

PYTHON = Path(sys.executable)


@pytest.fixture
def only_this_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever environments this checkout has, the run uses that of the test."""
    for framework in FRAMEWORKS:
        monkeypatch.setenv(f"GEM_PYTHON_{framework.upper()}", sys.executable)


@pytest.mark.usefixtures("only_this_environment")
def test_a_short_run_leaves_its_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # warm-started weights are kept under the current folder
    main(STUDY, page, ["--short", "--results", str(tmp_path / "results")])
    (result,) = read(tmp_path / "results", phase="short")
    assert result.run == declared(STUDY.short)
    assert result.updates == len(result.curves["episode/success"]) == 2
    assert result.totals["rollout/episodes"] == 32
    assert result.random_success is not None
    assert result.cpu_seconds > 0
    assert result.versions["trl"]


def test_the_cpu_time_of_grandchildren_counts(tmp_path: Path) -> None:
    # The grandchild outlives its parent, as Ray's processes do, and needs a second. Dead orphans can still be read.
    spin = "import time\\nwhile time.process_time() < 1: pass"
    program = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', '{spin}'])"
    assert run(PYTHON, ["-c", program], tmp_path / "log") >= 0.9


def test_a_program_that_fails_is_an_error_that_names_the_log(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=f"exit code 3. Next: read {tmp_path}/log"):
        run(PYTHON, ["-c", "print('why'); raise SystemExit(3)"], tmp_path / "log")
    assert (tmp_path / "log").read_text() == "why\n"


@pytest.mark.parametrize("how", ["the supervisor is terminated", "its parent is killed"])
def test_a_program_does_not_outlive_who_wanted_it(tmp_path: Path, how: str) -> None:
    sleeper = "import os, time; print(os.getpid(), flush=True); time.sleep(1000)"
    command = [sys.executable, "-m", "recipes.frameworks.supervisor", str(tmp_path / "log")]
    command += [sys.executable, "-c", sleeper]
    if how == "its parent is killed":
        wait = "import subprocess, sys; subprocess.run(sys.argv[1:])"
        command = [sys.executable, "-c", wait, *command]
    with subprocess.Popen(command, cwd=ROOT) as started:
        wait_until(lambda: (tmp_path / "log").exists() and (tmp_path / "log").read_text().endswith("\n"))
        program = int((tmp_path / "log").read_text())
        started.send_signal(signal.SIGTERM if how == "the supervisor is terminated" else signal.SIGKILL)
        wait_until(lambda: not psutil.pid_exists(program))


def test_a_framework_without_environment_says_how_to_get_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recipes.frameworks.programs.ROOT", tmp_path)
    monkeypatch.setenv("ROLL_HOME", str(tmp_path))
    for framework in FRAMEWORKS:
        monkeypatch.delenv(f"GEM_PYTHON_{framework.upper()}", raising=False)
        with pytest.raises(RecipeError, match=f"Next: nox -s {framework} -- --collect-only"):
            python_of(framework)
    monkeypatch.delenv("ROLL_HOME")
    with pytest.raises(RecipeError, match="ROLL needs its clone"):
        python_of("roll")


def test_the_whole_of_oat_is_preferred(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recipes.frameworks.programs.ROOT", tmp_path)
    monkeypatch.delenv("GEM_PYTHON_OAT", raising=False)
    for name in ("oat", "oat_full"):
        python = tmp_path / ".nox" / name / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.touch()
        assert python_of("oat") == python


def test_a_profile_without_runs_is_named() -> None:
    with pytest.raises(SystemExit, match="frameworks has no runs for the profile gpu"):
        main(STUDY, page, ["--profile", "gpu"])


def test_each_step_of_the_dense_corridor_pays() -> None:
    env = make(DENSE)
    for seed in range(10):
        env.reset(seed=seed)
        corridor = env.unwrapped
        way = corridor.goal - corridor.player
        right, wrong = (">", "<") if way > 0 else ("<", ">")
        if 0 < corridor.player < corridor.length - 1:
            assert env.step(wrong)[1] == pytest.approx(-NEARER)
            assert env.step(right)[1] == pytest.approx(NEARER)
        if abs(way) > 1:
            assert env.step(right)[1] == pytest.approx(NEARER)
        while not (last := env.step(right))[2]:
            assert last[1] == pytest.approx(NEARER)
        assert last[1] == 1
