"""An environment of Gymnasium trains in TRL's own loop: `nox -s trl_gym`."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import QUIET

from gem_tiny import tiny_policy
from gem_trl import ProgressCallback, TurnGRPOConfig, TurnGRPOTrainer

ENV = "gym:FrozenLake-v1"
LAKE = {"is_slippery": False, "desc": ["SFF", "FHF", "FFG"], "max_episode_steps": 10}


@pytest.mark.timeout(900)  # a minute of CPU time, which takes several on a busy machine
@pytest.mark.uncertain("learning depends on the sampled episodes")
def test_a_way_over_the_lake_is_learned(tmp_path: Path) -> None:
    model, tokenizer = tiny_policy(ENV, env_kwargs=LAKE, warm_start_steps=200, seed=0)
    progress = ProgressCallback("lake")
    args = TurnGRPOConfig(
        str(tmp_path),
        env=ENV,
        env_kwargs=LAKE,
        history=1,
        row="turn",
        gamma=0.9,
        per_device_train_batch_size=64,
        max_completion_length=4,
        learning_rate=1e-3,
        lr_scheduler_type="constant",
        adam_beta2=0.95,
        max_grad_norm=0.5,
        entropy_coef=0.02,
        max_steps=12,
        vector_backend="sync",
        seed=0,
        **QUIET,
    )
    TurnGRPOTrainer(model, args, tokenizer, callbacks=[progress]).train()
    success = [line["episode/success"] for line in progress.report.history]
    assert sum(success[-3:]) / 3 > 0.4, success  # random play: 0.08
