"""verl trains on environments of every kind in one run: `nox -s mixtures`."""

from __future__ import annotations

from pathlib import Path

import new_kinds
import pytest
from runs import train, trained_responses
from training_run import SECONDS

pytestmark = pytest.mark.timeout(SECONDS * 2)

FLAGS = [
    f"gem.env=[{new_kinds.ENVS}]",
    f"gem.env_limits=[{new_kinds.MOST}]",
    f"gem.max_response_tokens={new_kinds.TURN}",
    f"algorithm.gamma={new_kinds.GAMMA}",
    f"data.max_prompt_length={new_kinds.PROMPT}",
    f"data.max_response_length={new_kinds.RESPONSE}",
    "data.train_batch_size=8",
    "actor_rollout_ref.actor.ppo_mini_batch_size=8",
    "trainer.total_training_steps=2",
]


def test_environments_of_every_kind_train_in_one_run(tmp_path: Path):
    run = train(tmp_path, new_kinds.save_model(tmp_path / "model"), FLAGS)
    new_kinds.assert_every_kind_was_trained(run, [trained_responses(batch) for batch in run.batches])
