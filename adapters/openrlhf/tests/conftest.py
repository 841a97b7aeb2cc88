"""Shared by the tests of the OpenRLHF adapter: the CPU as OpenRLHF's device, tokenizers, a tiny model, arguments."""

# ruff: noqa: E402  OpenRLHF looks for devices when it is imported.

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

sys.path.append(str(Path(__file__).parent))
os.environ.setdefault("HF_HUB_OFFLINE", "1")  # models are folders

from gem_cpu import openrlhf as cpu

cpu.prepare()  # before OpenRLHF is imported

import pytest
import torch
from openrlhf.utils import config
from transformers import PreTrainedTokenizerFast

from gem_support.babble import register
from gem_support.byte_level import byte_level_bpe
from gem_tiny import tiny_model, tiny_tokenizer

torch.set_num_threads(1)
register()

FLAGS = [
    *cpu.flags(),
    "--actor.model_name_or_path=model",
    "--rollout.batch_size=8",
    "--rollout.max_new_tokens=8",
    "--train.batch_size=8",
    "--data.max_len=256",
]


@pytest.fixture(scope="session")
def words() -> PreTrainedTokenizerFast:
    """A word-level tokenizer."""
    return tiny_tokenizer(["test:Babble-v0", "game:Corridor-v0"])


@pytest.fixture(scope="session")
def bpe() -> PreTrainedTokenizerFast:
    return byte_level_bpe()


@pytest.fixture(scope="session")
def model_folder(bpe: PreTrainedTokenizerFast, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved tiny model with a tokenizer for which decoding and encoding again gives other ids."""
    folder = tmp_path_factory.mktemp("model")
    tiny_model(bpe, seed=0).save_pretrained(folder)
    bpe.save_pretrained(folder)
    return folder


@pytest.fixture
def arguments() -> Callable[..., SimpleNamespace]:
    """A function that returns OpenRLHF's arguments as its own command line parses them."""
    return openrlhf_arguments


def openrlhf_arguments(*flags: str) -> SimpleNamespace:
    made: list[SimpleNamespace] = []
    hierarchize = config.hierarchize

    def catch(flat: object) -> None:
        made.append(hierarchize(flat))
        raise StopIteration

    argv = ["train", *FLAGS, *flags]
    with patch.object(config, "hierarchize", catch), patch.object(sys, "argv", argv), pytest.raises(StopIteration):
        runpy.run_module("openrlhf.cli.train_ppo_ray", run_name="__main__", alter_sys=True)
    args = made[0]
    args.actor.eps_clip_low_high = (args.actor.eps_clip, args.actor.eps_clip)
    return args
