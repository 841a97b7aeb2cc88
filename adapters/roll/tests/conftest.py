"""Shared by the tests of the ROLL adapter: the clone of ROLL, tokenizers, a tiny model, configurations."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
os.environ.setdefault("HF_HUB_OFFLINE", "1")  # models are folders

import clone
import pytest
import torch
from transformers import PreTrainedTokenizerFast

from gem_support.babble import register
from gem_support.byte_level import byte_level_bpe
from gem_tiny import tiny_model, tiny_tokenizer

torch.set_num_threads(1)
register()


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs_roll: runs ROLL's own code, a clone of which ROLL_HOME names")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip tests that need ROLL if it is missing, with the reason."""
    if not clone.HOME:
        for item in items:
            if item.get_closest_marker("needs_roll"):
                item.add_marker(pytest.mark.skip(reason=clone.WITHOUT))


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
