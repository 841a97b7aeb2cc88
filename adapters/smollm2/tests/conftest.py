"""The model and its tokenizer, loaded once."""

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

from gem_support.smollm2 import folder, tokenizer

__all__ = ["folder", "tokenizer"]
