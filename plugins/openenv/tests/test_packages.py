"""`openenv:` ids of packages, whose servers are started for them and leave nothing behind."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gem_core import Env, make
from gem_core.errors import EnvError
from gem_support.processes import processes_with
from gem_support.waiting import wait_until

pytest.importorskip("openenv")

GUESS = "game:GuessTheNumber-v0-easy"
ACTIONS = [f"\\boxed{{{number}}}" for number in (5, 3, 8)]
START = 240.0
"""Seconds; only a hang takes so long."""
BROKEN = """print("not a port")
raise RuntimeError("the well is dry")
"""
OWNER = """import time
from gem_core import make
env = make("openenv:guess", start_seconds=240.0)
print(env.reset(seed=1), flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from gem_openenv._exporting import write_package

    return write_package(GUESS, {}, tmp_path_factory.mktemp("packages") / "guess", (-1.0, 1.0))


def served(package: Path) -> int:
    """The process that serves the package."""
    (process,) = processes_with(str(package))
    return process


def played(env: Env, seed: int) -> list[object]:
    shown: list[object] = [env.reset(seed=seed)]
    for action in ACTIONS:
        shown.append(transition := env.step(action))
        if transition[2]:
            break
    return shown


@pytest.mark.timeout(900)  # three servers start, on a machine that may be busy
def test_a_folder_is_served_for_its_environment(package: Path) -> None:
    with make(GUESS) as here, make(f"openenv:{package}", start_seconds=START) as env:
        assert processes_with(str(package)) == [], "it starts with the first call"
        assert [played(env, seed) for seed in range(3)] == [played(here, seed) for seed in range(3)]
        # A server that died costs an episode, and another one is started.
        env.reset(seed=2)
        os.kill(served(package), signal.SIGKILL)
        wait_until(lambda: not processes_with(str(package)))
        with pytest.raises(EnvError, match="The episode is lost"):
            env.step(ACTIONS[0])
        assert played(env, 4) == played(here, 4)
        # A copy has a server of its own.
        env.reset(seed=2)
        env.step(ACTIONS[0])
        with pickle.loads(pickle.dumps(env)) as copy:
            assert copy.step(ACTIONS[1])[:4] == env.step(ACTIONS[1])[:4]
            assert len(processes_with(str(package))) == 2
        served(package)
    assert processes_with(str(package)) == []


@pytest.mark.timeout(600)
def test_an_installed_package_and_an_owner_that_is_killed(package: Path) -> None:
    """Importable by its name, as `pip install` makes it; and the server ends though nobody closes it."""
    environment = {**os.environ, "PYTHONPATH": str(package.parent)}
    command = [sys.executable, "-c", OWNER]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as owner, make(GUESS) as here:
        assert owner.stdout is not None
        assert owner.stdout.readline() == f"{here.reset(seed=1)}\n"
        assert len(processes_with(str(package.parent))) == 2
        owner.kill()
    wait_until(lambda: not processes_with(str(package.parent)), "the server is still there")


def test_a_server_that_does_not_start(package: Path, tmp_path: Path) -> None:
    (tmp_path / "openenv.yaml").write_text("app: server:app\n")
    (tmp_path / "server.py").write_text(BROKEN)
    with make(f"openenv:{tmp_path}", start_seconds=START) as env, pytest.raises(EnvError, match="the well is dry"):
        env.reset()
    with make(f"openenv:{package}", start_seconds=0.0) as env, pytest.raises(EnvError, match="did not start in 0"):
        env.reset()
    with make(f"openenv:{package}", python="/no/python") as env, pytest.raises(EnvError, match="cannot run /no/python"):
        env.reset()
    assert processes_with(str(package)) == []


def test_what_is_no_package(tmp_path: Path) -> None:
    with pytest.raises(EnvError, match=r"has no openenv\.yaml"):
        make(f"openenv:{tmp_path}")
    with pytest.raises(EnvError, match="no installed package; write openenv:http://host:port"):
        make("openenv:no_such_package")
