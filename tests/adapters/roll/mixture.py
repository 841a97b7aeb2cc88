"""ROLL trains on environments of every kind in one run: `nox -s mixtures`."""

from __future__ import annotations

from pathlib import Path

import new_kinds
import pytest
from runs import train, trained_responses
from training_run import SECONDS

pytestmark = [pytest.mark.timeout(SECONDS * 2), pytest.mark.needs_roll]

FLAGS = [
    f"gem.env=[{new_kinds.ENVS}]",
    f"++gem.env_limits=[{new_kinds.MOST}]",
    f"step_reward_gamma={new_kinds.GAMMA}",
    f"sequence_length={new_kinds.PROMPT + new_kinds.RESPONSE}",
    f"++gem.max_response_tokens={new_kinds.TURN}",
    "rollout_batch_size=8",
    "max_steps=2",
]


def test_environments_of_every_kind_train_in_one_run(tmp_path: Path):
    run = train(tmp_path, new_kinds.save_model(tmp_path / "model"), FLAGS)
    new_kinds.assert_every_kind_was_trained(run, [trained_responses(batch) for batch in run.batches])
