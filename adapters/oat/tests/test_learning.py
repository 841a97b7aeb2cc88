"""An agent learns in Oat's own loop on the CPU, with the example as a user runs it, in the lighter form."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gem_cpu.oat import FLAGS
from gem_support.scripts import answer_of
from gem_support.training_run import (
    CORRIDOR_UPDATES,
    EXAMPLES,
    WITHOUT_THE_CLONE,
    assert_success_rose,
    copied,
    keep_for_viewer,
)

EXAMPLE = EXAMPLES / "oat_guess_the_number.py"
CORRIDOR = {
    "--env": "game:Corridor-v0",
    "--max_train": str(CORRIDOR_UPDATES * 64),
    "--gamma": "0.7",
    "--learning_rate": "5e-4",
    "--rollout_batch_size_per_device": "64",
    "--train_batch_size": "64",
    "--train_batch_size_per_device": "16",
    "--eval_steps": str(CORRIDOR_UPDATES),
    "--eval_episodes": "16",
    "--eval_temperature": "1",
    "--eval_generate_max_length": "4",
}


@pytest.mark.timeout(600)
@pytest.mark.uncertain("learning depends on the sampled episodes")
def test_the_example_learns_the_corridor_from_an_empty_folder(tmp_path: Path):
    own = {"--report": f"{tmp_path}/report", "--record": "full", "--save_path": f"{tmp_path}/oat"}
    flags = [part for pair in {**CORRIDOR, **own}.items() for part in pair]
    done = run([copied(EXAMPLE.name, tmp_path), *flags], tmp_path)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-3000:]
    keep_for_viewer("oat", tmp_path / "report")
    assert "Lighter form: real Oat classes" in done.stdout
    assert "rebn active: " in done.stdout
    before, *metrics = [json.loads(line) for line in (tmp_path / "report" / "metrics.jsonl").read_text().splitlines()]
    assert before["step"] == 0
    assert before["eval_episode/success"] < 1
    assert len(metrics) == CORRIDOR_UPDATES
    success = [line["episode/success"] for line in metrics]
    assert_success_rose(success)
    assert metrics[-1]["eval_episode/success"] > 0.8
    assert (tmp_path / "report" / "curve.png").read_bytes()[:4] == b"\x89PNG"
    assert not [*(tmp_path / "temporary").glob("tiny*")]


def test_wrong_flags_give_clear_errors(monkeypatch: pytest.MonkeyPatch):
    # In this process, which `conftest` has prepared: a new one would import Oat again.
    monkeypatch.setattr("gem_cpu.oat.prepare", lambda: [*FLAGS])
    unknown = answer_of(EXAMPLE, "--env", "game:Corridor-v0", "--hystory", "2")
    assert unknown.returncode == 2
    assert "hystory" in unknown.stdout + unknown.stderr


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    temporary = folder / "temporary"
    temporary.mkdir(exist_ok=True)
    environment = {**os.environ, **WITHOUT_THE_CLONE, "TMPDIR": str(temporary)}
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, timeout=550
    )
