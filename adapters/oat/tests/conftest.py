"""Shared by the tests of the Oat adapter: the lighter form, tokenizers, a tiny model, arguments."""

# ruff: noqa: E402  Oat looks for devices when it is imported.

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
os.environ.setdefault("HF_HUB_OFFLINE", "1")  # models are folders

import gem_cpu.oat

gem_cpu.oat.prepare(devices=2)

import pytest
import torch

from gem_support.babble import register
from gem_support.byte_level import byte_level_bpe
from gem_tiny import tiny_model

torch.set_num_threads(1)
register()
# The whole program needs Launchpad, which the lighter form replaces.
collect_ignore = [] if hasattr(importlib.import_module("launchpad"), "__file__") else ["full"]


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved tiny model with a tokenizer for which decoding and encoding again gives other ids."""
    folder = tmp_path_factory.mktemp("model")
    tokenizer = byte_level_bpe()
    tiny_model(tokenizer, seed=0).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
