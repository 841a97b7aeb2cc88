"""Shared by the tests of the verl adapter: the CPU as verl's device, tokenizers, a tiny model, configurations."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
os.environ.setdefault("HF_HUB_OFFLINE", "1")  # models are folders

from gem_cpu import verl as cpu

# Before verl is imported, which reads these variables.
os.environ.update(cpu.environment())

import copy
from collections.abc import Callable

import pytest
import torch
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig
from transformers import PreTrainedTokenizerFast

from gem_support.babble import register
from gem_support.byte_level import byte_level_bpe
from gem_tiny import tiny_model, tiny_tokenizer

torch.set_num_threads(1)
register()


@pytest.fixture(scope="session")
def words() -> PreTrainedTokenizerFast:
    """A word-level tokenizer."""
    return tiny_tokenizer(["test:Babble-v0", "game:Corridor-v0"])


@pytest.fixture(scope="session")
def bpe() -> PreTrainedTokenizerFast:
    return byte_level_bpe()


@pytest.fixture(scope="session")
def model_folder(words: PreTrainedTokenizerFast, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model and its tokenizer, saved."""
    folder = tmp_path_factory.mktemp("model")
    tiny_model(words, seed=0).save_pretrained(folder)
    words.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def _composed(model_folder: Path) -> DictConfig:
    from gem_verl import compose

    flags = [
        "gem.env=test:Babble-v0",
        "gem.max_response_tokens=8",
        "gem.eval_episodes=8",
        "data.train_batch_size=8",
        "data.max_prompt_length=128",
        "data.max_response_length=256",
        "actor_rollout_ref.actor.ppo_mini_batch_size=8",
        f"actor_rollout_ref.model.path={model_folder}",
        "critic.ppo_mini_batch_size=8",
        "trainer.total_training_steps=2",
    ]
    return compose([*flags, *cpu.overrides("/tmp")])


@pytest.fixture
def configure(_composed: DictConfig) -> Callable[..., DictConfig]:
    """A function that returns verl's whole configuration; its arguments override it, as on the command line."""

    def make(*flags: str) -> DictConfig:
        config = copy.deepcopy(_composed)  # composing takes seconds; overrides are parsed as in Hydra
        ConfigLoaderImpl._apply_overrides_to_config(OverridesParser.create().parse_overrides([*flags]), config)
        return config

    return make
