"""An agent learns in verl's own trainer on the CPU, with the example as a user runs it: the end-to-end test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gem_cpu import verl as cpu
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

EXAMPLE = EXAMPLES / "verl_guess_the_number.py"
CORRIDOR = [
    "gem.env=game:Corridor-v0",
    "gem.eval_episodes=16",
    "data.train_batch_size=64",
    "algorithm.gamma=0.7",
    "actor_rollout_ref.actor.ppo_mini_batch_size=64",
    "actor_rollout_ref.actor.entropy_coeff=0",
    "actor_rollout_ref.actor.optim.lr=5e-4",
    "actor_rollout_ref.actor.optim.lr_scheduler_type=constant",
    "actor_rollout_ref.rollout.val_kwargs.temperature=1.0",
    f"trainer.total_training_steps={CORRIDOR_UPDATES}",
    f"trainer.test_freq={CORRIDOR_UPDATES}",
]


@pytest.mark.uncertain("learning depends on the sampled episodes, and Ray has its own time limits")
def test_the_example_learns_the_corridor_from_an_empty_folder(tmp_path: Path):
    flags = [*CORRIDOR, f"gem.report={tmp_path}/report", "gem.record=full"]
    command = [sys.executable, copied(EXAMPLE.name, tmp_path), *flags]
    run = launch(TrainingRun, command, tmp_path, WITHOUT_THE_CLONE)
    keep_for_viewer("verl", tmp_path / "report")
    assert_learned_the_corridor(run, batch=64, evaluated=16)
    assert_leaves_nothing(run)


def test_an_unknown_environment_is_named(tmp_path: Path):
    """The real program; other wrong flags are in test_settings.py."""
    command = [
        *(sys.executable, "-m", "gem_verl", "gem.env=game:Corrido-v0"),
        "data.train_batch_size=8",
        "actor_rollout_ref.actor.ppo_mini_batch_size=8",
        "trainer.total_training_steps=1",
    ]
    environment = {**os.environ, **cpu.environment()}
    unknown = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240)
    assert unknown.returncode == 1
    last = unknown.stderr.strip().splitlines()[-1]
    assert last.startswith("NotFoundError: no environment 'game:Corrido-v0'. Did you")
