"""Fixtures: SmolLM2 and its tokenizer, loaded once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

from gem_smollm2 import smollm2_folder


@pytest.fixture(scope="session")
def folder() -> Path:
    """The folder of the model, which may be made first."""
    return smollm2_folder()


@pytest.fixture(scope="session")
def tokenizer(folder: Path) -> Any:
    """Its tokenizer."""
    return AutoTokenizer.from_pretrained(folder)
