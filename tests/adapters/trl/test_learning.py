"""An agent learns in TRL's own loop, from nothing, on the CPU: the end-to-end test."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import QUIET

from gem_core.rollout import read_episodes, recording
from gem_tiny import tiny_model, tiny_tokenizer
from gem_trl import ProgressCallback, TurnGRPOConfig, TurnGRPOTrainer

CORRIDOR = {
    "env": "game:Corridor-v0",
    "view": "turn",
    "history": 1,
    "gamma": 0.7,
    "per_device_train_batch_size": 32,
    "gradient_accumulation_steps": 2,
    "max_completion_length": 1,
    "truncated_is_invalid": False,
    "learning_rate": 1.5e-3,
    "entropy_coef": 0.02,
    "adam_beta2": 0.95,
    "max_grad_norm": 0.5,
    "max_steps": 40,
    "vector_backend": "sync",
}


@pytest.mark.parametrize("seed", [0])
def test_corridor_is_learnt(tmp_path: Path, seed: int):
    tokenizer = tiny_tokenizer(["game:Corridor-v0"])
    args = TurnGRPOConfig(str(tmp_path), **{**QUIET, **CORRIDOR, "seed": seed})
    progress = ProgressCallback("corridor")
    run = TurnGRPOTrainer(tiny_model(tokenizer, seed=seed), args, tokenizer, callbacks=[progress])
    with recording(tmp_path / "episodes.jsonl"):
        run.train()
    returns = [line["episode/return"] for line in progress.report.history]
    assert len(returns) == 40
    assert returns[0] < 0.2
    assert sum(returns[-5:]) / 5 > 0.9  # 0.98 and more as a rule
    assert (tmp_path / "curve.png").read_bytes()[:4] == b"\x89PNG"
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == 40
    episodes = list(read_episodes(tmp_path / "episodes.jsonl"))
    assert len(episodes) >= 40 * 64
    assert json.loads((tmp_path / "metrics.jsonl").read_text().splitlines()[0])["step"] == 1
