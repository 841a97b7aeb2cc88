"""An agent learns in OpenRLHF's own training on the CPU, by the example as a user runs it: the end-to-end test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from openrlhf_on_cpu import settings as cpu
from runs import SECONDS, launch

pytestmark = pytest.mark.timeout(SECONDS * 2)

EXAMPLE = Path(__file__).parents[3] / "examples" / "openrlhf_guess_the_number.py"
CORRIDOR = [
    *("--gem.env", "game:Corridor-v0"),
    *("--gem.steps", "36"),
    *("--gem.eval_episodes", "16"),
    *("--rollout.batch_size", "24"),
    *("--rollout.micro_batch_size", "8"),
    *("--train.batch_size", "24"),
    *("--train.micro_batch_size", "8"),
    *("--actor.lr_scheduler", "constant"),
    *("--eval.steps", "36"),
    *("--eval.temperature", "1"),
    *("--eval.n_samples_per_prompt", "1"),
]


def test_the_example_learns_the_corridor(tmp_path: Path):
    flags = [*CORRIDOR, "--gem.report", f"{tmp_path}/report", "--gem.recording", f"{tmp_path}/episodes"]
    run = launch([sys.executable, str(EXAMPLE), *flags], tmp_path, {"WARM_START_STEPS": "100"})
    assert run.code == 0, run.output[-3000:]
    assert "rebn active: " in run.output
    metrics = run.metrics
    assert len(metrics) == 36
    success = [line["episode/success"] for line in metrics]
    assert sum(success[:3]) / 3 < 0.7
    assert sum(success[-5:]) / 5 > 0.9
    assert metrics[-1]["eval_episode/success"] > 0.8
    # The policy has moved far by the end, so weights that did not reach vLLM would show.
    assert all(abs(line["vllm_kl"]) < 1e-5 for line in metrics)
    assert (tmp_path / "report" / "curve.png").read_bytes()[:4] == b"\x89PNG"
    assert len(run.episodes) == 36 * 24 + 16
    assert {episode.provenance.split(" (")[1] for episode in run.episodes} == {"plugin 'game')"}


def test_the_example_stays_short():
    assert len(EXAMPLE.read_text().splitlines()) < 80


def test_wrong_flags_are_answered_well(tmp_path: Path):
    def answer(*flags: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, **cpu.environment()}
        command = [sys.executable, "-m", "gem_openrlhf", "--gem.steps", "1", *flags]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)

    wrong = answer("--gem.env", "game:Corridor-v0", "--gem.hystory", "2")
    assert wrong.returncode == 2
    assert "unrecognized arguments: --gem.hystory" in wrong.stderr
    sizes = [*cpu.flags(), "--rollout.max_new_tokens", "4", "--rollout.batch_size", "8", "--train.batch_size", "8"]
    unknown = answer("--gem.env", "game:Corrido-v0", *sizes)
    assert unknown.returncode == 1
    last = unknown.stderr.strip().splitlines()[-1]
    assert last.startswith("NotFoundError: no environment 'game:Corrido-v0'. Did you")
    help = answer("--help").stdout
    assert "--gem.max_env_failure_share" in help
    assert "--algo.advantage.gamma" in help
