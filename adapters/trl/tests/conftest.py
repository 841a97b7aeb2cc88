"""Settings that every TRL test shares. Nothing of TRL is replaced: the installed trainer runs on the CPU."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import pytest
import torch

from gem_support.babble import register
from gem_support.byte_level import byte_level_bpe
from gem_tiny import tiny_model, tiny_tokenizer
from gem_trl import TurnGRPOConfig, TurnGRPOTrainer

torch.set_num_threads(1)
register()

QUIET = {
    "report_to": "none",
    "save_strategy": "no",
    "disable_tqdm": True,
    "logging_steps": 1,
}
SMALL = {
    "env": "test:Babble-v0",
    "per_device_train_batch_size": 4,
    "gradient_accumulation_steps": 2,
    "max_completion_length": 4,
    "max_steps": 1,
    "gamma": 0.9,
    "seed": 0,
}


@pytest.fixture
def settings(tmp_path: Path):
    """A function that makes a small configuration; its arguments replace the defaults above."""

    def make(**changes: Any) -> TurnGRPOConfig:
        return TurnGRPOConfig(str(tmp_path), **{**QUIET, **SMALL, **changes})

    return make


@pytest.fixture
def trainer(settings):
    """A function that makes a trainer with a tiny model; its arguments go to the configuration."""

    def make(*, cls: type[TurnGRPOTrainer] = TurnGRPOTrainer, extra: dict[str, Any] | None = None, **changes: Any):
        args = settings(**changes)
        tokenizer = tiny_tokenizer(["test:Babble-v0", "game:Corridor-v0"])
        return cls(tiny_model(tokenizer, seed=args.seed), args, tokenizer, **(extra or {}))

    return make


@pytest.fixture
def bpe_trainer(settings):
    """As `trainer`, with a byte-level BPE tokenizer for which decoding and encoding again gives other ids."""

    def make(*, cls: type[TurnGRPOTrainer] = TurnGRPOTrainer, **changes: Any):
        tokenizer = byte_level_bpe()
        return cls(tiny_model(tokenizer, seed=0), settings(**changes), tokenizer)

    return make
