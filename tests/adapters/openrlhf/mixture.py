"""OpenRLHF trains on environments of every kind in one run: `nox -s mixtures`."""

from __future__ import annotations

from pathlib import Path

import new_kinds
import pytest
from runs import train, trained_responses
from training_run import SECONDS

pytestmark = pytest.mark.timeout(SECONDS * 2)

FLAGS = [
    *("--gem.env", *new_kinds.LIMITS),
    *("--gem.env_limits", *map(str, new_kinds.LIMITS.values())),
    *("--gem.steps", "2"),
    *("--algo.advantage.gamma", str(new_kinds.GAMMA)),
    *("--algo.kl.init_coef", "0"),
    *("--algo.advantage.is_correction_level", "token"),  # the spy needs the log-probabilities of vLLM
    *("--algo.advantage.is_correction_mode", "clip"),
    *("--rollout.batch_size", "8"),
    *("--rollout.micro_batch_size", "2"),
    *("--rollout.max_new_tokens", str(new_kinds.TURN)),
    *("--train.batch_size", "8"),
    *("--train.micro_batch_size", "2"),
    *("--data.max_len", str(new_kinds.PROMPT + new_kinds.RESPONSE)),
]


def test_environments_of_every_kind_train_in_one_run(tmp_path: Path):
    run = train(tmp_path, new_kinds.save_model(tmp_path / "model"), FLAGS)
    new_kinds.assert_every_kind_was_trained(run, [trained_responses(batch) for batch in run.batches()])
