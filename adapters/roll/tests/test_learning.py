"""An agent learns in ROLL's own pipeline on the CPU, with the example as a user runs it: the end-to-end test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gem_cpu import roll as cpu
from gem_support.training_run import (
    CORRIDOR_UPDATES,
    EXAMPLES,
    SECONDS,
    WITHOUT_THE_CLONE,
    TrainingRun,
    assert_learned_the_corridor,
    assert_leaves_nothing,
    copied,
    keep_for_viewer,
    launch,
)

pytestmark = pytest.mark.timeout(SECONDS * 2)

EXAMPLE = EXAMPLES / "roll_guess_the_number.py"
YAML = EXAMPLES / "roll_guess_the_number_gpu.yaml"
CORRIDOR = [
    "gem.env=game:Corridor-v0",
    "+gem.eval_episodes=48",
    "rollout_batch_size=64",
    "sequence_length=256",
    f"max_steps={CORRIDOR_UPDATES}",
    f"eval_steps={CORRIDOR_UPDATES - 1}",  # before the first update and the last: ROLL has none after it
    "step_reward_gamma=0.7",
    "entropy_loss_coef=0",
    "actor_train.training_args.per_device_train_batch_size=64",
    "actor_train.training_args.learning_rate=5e-4",
    "actor_train.training_args.lr_scheduler_type=constant",
]


@pytest.mark.needs_roll
@pytest.mark.uncertain("learning depends on the sampled episodes, and Ray has its own time limits")
def test_the_example_learns_the_corridor_from_an_empty_folder(tmp_path: Path):
    folders = [
        f"gem.report={tmp_path}/report",
        "++gem.record=full",
        f"output_dir={tmp_path}/output",
        f"logging_dir={tmp_path}/logs",
        f"checkpoint_config.output_dir={tmp_path}/checkpoints",
    ]
    command = [sys.executable, copied(EXAMPLE.name, tmp_path), *CORRIDOR, *folders]
    run = launch(TrainingRun, command, tmp_path, WITHOUT_THE_CLONE)
    keep_for_viewer("roll", tmp_path / "report")
    assert_learned_the_corridor(run, batch=64, evaluated=96)
    assert_leaves_nothing(run)
    evaluated = {line["step"]: line["eval_episode/success"] for line in run.lines if "eval_episode/success" in line}
    assert [*evaluated] == [0, CORRIDOR_UPDATES - 1], "the number of updates before each evaluation"
    assert evaluated[0] < 0.8
    # The policy has changed a lot by the end, so weights that did not reach the engine would show.
    assert all(abs(line["actor/train_infer_diff_token_mean"]) < 1e-4 for line in run.metrics)


@pytest.mark.needs_roll
def test_wrong_settings_give_clear_errors(tmp_path: Path):
    def answer(*flags: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, **cpu.environment()}
        command = [sys.executable, "-m", "gem_roll", str(YAML), "pretrain=none", *flags]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)

    wrong = answer("+gem.hystory=2")
    assert wrong.returncode == 1
    assert wrong.stderr.strip().startswith("SettingsError: there is no setting gem.hystory. Did you mean 'gem.history'")
    unknown = answer("gem.env=game:Corrido-v0")
    assert unknown.returncode == 1
    assert unknown.stderr.strip().startswith("NotFoundError: no environment 'game:Corrido-v0'. Did you mean")


def test_without_roll_the_error_explains_how_to_install_it(tmp_path: Path):
    bare = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "ROLL_HOME")}
    command = [sys.executable, "-m", "gem_roll", str(YAML)]
    answer = subprocess.run(command, cwd=tmp_path, env=bare, capture_output=True, text=True, timeout=240)
    assert answer.returncode == 1
    assert answer.stderr.startswith(
        "FrameworkVersionError: the roll adapter needs roll>=0.3,<0.4, which is not installed."
    )
    assert "git clone https://github.com/alibaba/ROLL" in answer.stderr
