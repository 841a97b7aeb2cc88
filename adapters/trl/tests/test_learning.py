"""An agent learns in TRL's own loop on the CPU: the end-to-end test."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import QUIET

from gem_support.training_run import CORRIDOR_UPDATES, assert_success_rose, keep_for_viewer
from gem_tiny import tiny_policy
from gem_train.recording import stop_recording
from gem_train.records import read_episodes
from gem_trl import ProgressCallback, TurnGRPOConfig, TurnGRPOTrainer

CORRIDOR = {
    "env": "game:Corridor-v0",
    "gamma": 0.7,
    "per_device_train_batch_size": 32,
    "gradient_accumulation_steps": 2,
    "max_completion_length": 4,
    "learning_rate": 5e-4,
    "lr_scheduler_type": "constant",
    "adam_beta2": 0.95,
    "max_grad_norm": 0.5,
    "max_steps": CORRIDOR_UPDATES,
    "vector_backend": "sync",
    "seed": 0,
}


@pytest.mark.uncertain("learning depends on the sampled episodes")
def test_corridor_is_learned(tmp_path: Path):
    model, tokenizer = tiny_policy(CORRIDOR["env"], warm_start_steps=100, seed=0)
    progress = ProgressCallback("corridor")
    args = TurnGRPOConfig(str(tmp_path), record="full", report=str(tmp_path), **{**QUIET, **CORRIDOR})
    TurnGRPOTrainer(model, args, tokenizer, callbacks=[progress]).train()
    stop_recording()
    keep_for_viewer("trl", tmp_path)
    success = [line["episode/success"] for line in progress.report.history]
    assert len(success) == CORRIDOR_UPDATES
    assert_success_rose(success)
    assert sum(line["episode/return"] for line in progress.report.history[-5:]) / 5 > 0.9
    assert (tmp_path / "curve.png").read_bytes()[:4] == b"\x89PNG"
    assert len((tmp_path / "metrics.jsonl").read_text().splitlines()) == CORRIDOR_UPDATES
    assert len(list(read_episodes(tmp_path))) == CORRIDOR_UPDATES * 64
    assert json.loads((tmp_path / "metrics.jsonl").read_text().splitlines()[0])["step"] == 1
