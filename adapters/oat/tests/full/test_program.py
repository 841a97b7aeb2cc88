"""All of Oat on the CPU: Launchpad, Plasma, vLLM and DeepSpeed, in separate processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

import gem_cpu.oat
from gem_cpu.oat import devices
from gem_support.brute_force import expected, returns_to_go
from gem_support.training_run import assert_success_rose
from gem_tiny import tiny_policy
from gem_train.records import read_episodes
from gem_train.rollout import Episode

SECONDS = 900
pytestmark = pytest.mark.timeout(SECONDS + 60)
HERE = Path(__file__).parent
EPISODES, UPDATES = 64, 40
GAMMA = 0.7


class Run(NamedTuple):
    """A finished run and what it left behind."""

    folder: Path
    code: int
    output: str
    left: list[psutil.Process]
    """Processes of the run that were still there at its end."""

    @property
    def metrics(self) -> list[dict[str, float]]:
        return [json.loads(line) for line in (self.folder / "report" / "metrics.jsonl").read_text().splitlines()]

    @property
    def episodes(self) -> list[list[Episode]]:
        """The episodes of each actor, in the order in which they ended."""
        files = [[one.episode for one in read_episodes(path)] for path in sorted(self.folder.glob("records/*.gemrec"))]
        return [one for one in files if one]  # those of learners have updates only


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("policy")
    for part in tiny_policy(["game:Corridor-v0"], warm_start_steps=100, seed=0):
        part.save_pretrained(folder)
    return folder


def launch(
    folder: Path, policy: Path, flags: list[str], *, gpus: int = 1, disturb: Callable[[Path], None] | None = None
) -> Run:
    """Run the program to its end, with `disturb` acting on it."""
    own = {
        "--env": "game:Corridor-v0",
        "--pretrain": str(policy),
        "--gpus": str(gpus),
        "--gamma": str(GAMMA),
        "--beta": "0",
        "--generate_max_length": "4",
        "--max_model_len": "256",
        "--rollout_batch_size_per_device": str(EPISODES // gpus),
        "--train_batch_size": str(EPISODES),
        "--train_batch_size_per_device": "8",
        "--learning_rate": "5e-4",
        "--lr_scheduler": "constant",
        "--lr_warmup_ratio": "0",
        "--eval_steps": "-1",
        "--save_path": f"{folder}/oat",
        "--report": f"{folder}/report",
        "--record": "full",
        "--record_folder": f"{folder}/records",
    }
    pairs = [part for pair in own.items() for part in pair]
    command = [sys.executable, str(HERE / "program.py"), *gem_cpu.oat.FLAGS, "--collocate", *pairs, *flags]
    environment = {**os.environ, **devices.environment(gpus), "GEM_RUN": str(folder)}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"  # Launchpad calls `python`
    with (folder / "output.txt").open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT)
        try:
            if disturb is not None:
                disturb(folder)
            code = process.wait(SECONDS)
            for _ in range(20):  # helper processes of torch end a moment later
                if not (left := of_run(folder)):
                    break
                time.sleep(0.5)
        finally:
            for one in of_run(folder):
                one.kill()
            process.wait()
    return Run(folder, code, (folder / "output.txt").read_text(errors="replace"), left)


def of_run(folder: Path) -> list[psutil.Process]:
    """The processes of a run: all have its folder in their environment."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("GEM_RUN") == str(folder) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue
    return found


def _words(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return ""


def wait_for_batch(folder: Path) -> None:
    """Wait until training has started."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline and not (folder / "report" / "metrics.jsonl").exists():
        time.sleep(0.5)


def test_it_learns(policy: Path, tmp_path: Path):
    evaluation = ["--eval_episodes", "16", "--eval_temperature", "1", "--eval_generate_max_length", "4"]
    run = launch(tmp_path, policy, ["--max_train", str(EPISODES * UPDATES), "--eval_steps", str(UPDATES), *evaluation])
    assert run.code == 0, run.output[-3000:]
    assert "rebn active: " in run.output
    before, *metrics = run.metrics
    assert (before["step"], "episode/success" in before, before["eval_rollout/episodes"]) == (0, False, 16)
    success = [line["episode/success"] for line in metrics]
    assert len(success) == UPDATES
    assert_success_rose(success)
    # If weights did not reach vLLM, the difference would be far larger.
    assert all(abs(line["train/sampler_learner_prob_diff_max"]) < 1e-4 for line in metrics)
    assert metrics[-1]["eval_episode/success"] > 0.8
    assert (tmp_path / "report" / "curve.png").read_bytes()[:4] == b"\x89PNG"
    assert run.left == []


def test_two_actors_and_two_learners_learn_from_one_batch(policy: Path, tmp_path: Path):
    run = launch(tmp_path, policy, ["--max_train", str(EPISODES * UPDATES)], gpus=2)
    assert run.code == 0, run.output[-3000:]
    first, second = run.episodes
    assert {one.seed for one in first}.isdisjoint(one.seed for one in second)
    assert len(run.metrics) == UPDATES
    success = [line["episode/success"] for line in run.metrics]
    assert_success_rose(success)
    for batch, line in enumerate(run.metrics):
        episodes = [one for actor in (first, second) for one in actor if one.number == batch]
        rewards = [[turn.reward for turn in one.turns] for one in episodes]
        returns = [number for one in rewards for number in returns_to_go(one, GAMMA)]
        mean = sum(returns) / len(returns)
        assert line["rollout/episodes"] == EPISODES
        assert line["advantage/turns"] == len(returns)
        assert line["advantage/return_mean"] == pytest.approx(mean, abs=1e-5)
        spread = (sum((one - mean) ** 2 for one in returns) / len(returns)) ** 0.5
        assert line["advantage/return_std"] == pytest.approx(spread, abs=1e-5)
        numbers = [one for episode in expected("rebn", rewards, [0] * EPISODES, GAMMA) for one in episode]
        assert abs(sum(numbers)) < 1e-6
        assert all(abs(line["train/sampler_learner_prob_diff_max"]) < 1e-4 for line in run.metrics)
    assert run.left == []


@pytest.mark.parametrize("node", ["actor", "learner", "ipc"])
def test_the_program_ends_if_a_process_is_killed(policy: Path, tmp_path: Path, node: str):
    """Only the process of a node is killed: its children stay alive, and so does Launchpad's shell."""
    killed: list[float] = []

    def kill(folder: Path) -> None:
        wait_for_batch(folder)
        proxies = [one for one in of_run(folder) if f"{node}_" in (words := _words(one)) and "decorate" in words]
        (victim,) = [child for child in proxies[0].children() if child.name() not in ("sed", "decorate_output")]
        killed.append(time.monotonic())
        victim.kill()

    run = launch(tmp_path, policy, ["--max_train", "24000", "--vector_backend", "process"], disturb=kill)
    assert time.monotonic() - killed[0] < 60
    assert run.code == 1
    assert "AdapterError: a process of Oat's program ended without reporting an error" in run.output
    assert run.left == []


def test_a_stopped_program_ends_with_a_message(policy: Path, tmp_path: Path):
    def stop(folder: Path) -> None:
        wait_for_batch(folder)
        main = min(of_run(folder), key=lambda process: process.create_time())
        main.terminate()

    run = launch(tmp_path, policy, ["--max_train", "24000"], disturb=stop)
    assert run.code == 1
    assert "AdapterError: Oat's program was stopped before training was over" in run.output
    assert run.left == []
    assert (tmp_path / "report" / "curve.png").read_bytes()[:4] == b"\x89PNG"


def test_an_error_of_an_environment_is_shown(policy: Path, tmp_path: Path):
    (tmp_path / "broken.py").write_text(
        "import gem_core\n"
        "class Broken(gem_core.Env):\n"
        "    def reset(self, seed=None, **options):\n"
        "        super().reset(seed=seed)\n"
        "        return 'go', {}\n"
        "    def step(self, action):\n"
        "        raise RuntimeError('the level is gone')\n"
        "    def sample_random_action(self):\n"
        "        return 'left'\n"
        "gem_core.register('test:Broken-v0', Broken)\n"
    )
    flags = ["--env", "test:Broken-v0", "--modules", "broken", "--env_failure", "raise"]
    before = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = f"{tmp_path}{os.pathsep}{before}"
    try:
        run = launch(tmp_path, policy, [*flags, "--max_train", str(2 * EPISODES)])
    finally:
        os.environ["PYTHONPATH"] = before
    assert run.code == 1
    last = run.output[run.output.rindex("AdapterError: a process of Oat's program failed") :]
    assert "EnvFailure: test:Broken-v0" in last
    assert "the level is gone" in last
    assert run.left == []
