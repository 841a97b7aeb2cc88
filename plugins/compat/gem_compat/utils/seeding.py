"""Generators of random numbers."""

from __future__ import annotations

import random

import numpy as np


def set_seed(seed: int | None = None) -> None:
    """Seed the global generators of Python and numpy."""
    random.seed(seed)
    np.random.seed(None if seed is None else seed % 2**32)


def np_random(seed: int | None = None) -> tuple[np.random.Generator, int]:
    """A generator of its own, and its seed. Raises `ValueError` where the seed is no whole number from 0."""
    if seed is not None and (type(seed) is not int or seed < 0):
        raise ValueError(f"the seed must be a whole number from 0, not {seed!r}")
    sequence = np.random.SeedSequence(seed)
    entropy = sequence.entropy
    assert isinstance(entropy, int)
    return np.random.Generator(np.random.PCG64(sequence)), entropy
