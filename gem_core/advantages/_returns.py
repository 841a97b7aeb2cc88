"""Discounted sums along the turns of an episode."""

from __future__ import annotations

import numpy as np

from gem_core.errors import AdvantageError
from gem_core.turn_batch import FloatArray, TurnBatch


def returns_to_go(batch: TurnBatch, gamma: float = 1.0) -> FloatArray:
    """The return of each turn, G_t = r_t + gamma * G_{t+1}, as in GEM (arXiv 2510.01051).

    Args:
        batch: N turns of this rank.
        gamma: discount per turn (never per token), in [0, 1].

    Returns:
        float (N,), in the order of the batch and the unit of the rewards.

    Raises:
        AdvantageError: if `gamma` lies outside [0, 1].
    """
    check_fraction("gamma", gamma)
    return discounted_sums(batch, batch.rewards, gamma)


def discounted_sums(batch: TurnBatch, terms: FloatArray, discount: float) -> FloatArray:
    """Solve S_t = terms_t + discount * S_{t+1} within each episode, with 0 after its last turn. Shapes (N,)."""
    amounts, following = terms.tolist(), batch.following.tolist()
    sums = [0.0] * (len(batch) + 1)  # the last entry stands for the end of every episode
    for turn in reversed(batch.order.tolist()):
        sums[turn] = amounts[turn] + discount * sums[following[turn]]
    return np.array(sums[:-1], dtype=np.float64)


def check_fraction(name: str, number: float) -> None:
    """Raise `AdvantageError` unless `number` lies in [0, 1]."""
    if not 0.0 <= number <= 1.0:
        raise AdvantageError(f"{name} is {number}: it must lie in [0, 1]")
