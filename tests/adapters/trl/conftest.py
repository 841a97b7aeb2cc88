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
from babble import WORDS, register
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

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
    """As `trainer`, with a byte-level BPE tokenizer whose decoding and encoding are not the identity."""

    def make(*, cls: type[TurnGRPOTrainer] = TurnGRPOTrainer, **changes: Any):
        tokenizer = byte_level_bpe()
        return cls(tiny_model(tokenizer, seed=0), settings(**changes), tokenizer)

    return make


def byte_level_bpe() -> PreTrainedTokenizerFast:
    """A byte-level BPE of 320 tokens, trained on the spot, with a ChatML template."""
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=320, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    core.train_from_iterator([" ".join(WORDS)] * 20, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="<|endoftext|>", eos_token="<|im_end|>", padding_side="left"
    )
    tokenizer.chat_template = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    return tokenizer
