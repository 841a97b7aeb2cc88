"""Tiny models built on the spot, so that every example and test trains on a CPU without a download.

A tiny model is a randomly initialised Qwen3 of about 100k parameters with a tokenizer made of the words that its
environments use. It is not a language model: without `warm_start` it does not even know the action format.
"""

from gem_tiny.model import tiny_model
from gem_tiny.policy import tiny_policy
from gem_tiny.tokenizer import tiny_tokenizer
from gem_tiny.warm_start import warm_start

__all__ = ["tiny_model", "tiny_policy", "tiny_tokenizer", "warm_start"]
