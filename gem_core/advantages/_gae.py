"""Generalized advantage estimation over turns."""

from __future__ import annotations

import numpy as np

from gem_core.advantages._ranks import Gather, gather_local
from gem_core.advantages._returns import check_fraction, discounted_sums
from gem_core.errors import AdvantageError
from gem_core.turn_batch import FloatArray, TurnBatch


def gae(batch: TurnBatch, *, gamma: float = 1.0, gather: Gather = gather_local, lam: float = 0.95) -> FloatArray:
    """GAE(lambda) (arXiv 1506.02438) with a turn as the step, as in GEM's turn-level PPO (arXiv 2510.01051).

    A_t = delta_t + gamma * lam * A_{t+1} with delta_t = r_t + gamma * V_{t+1} - V_t. The value after the last
    turn is 0, also for an episode that was cut short.

    Args:
        batch: N turns of this rank, with the critic's values.
        gamma: discount per turn, in [0, 1].
        gather: not called; every estimator takes it.
        lam: lambda per turn, in [0, 1]: 0 trusts the critic, 1 the observed returns.

    Returns:
        float (N,), in the order of the batch and the unit of the rewards; adding `batch.values` gives the
        critic's targets.

    Raises:
        AdvantageError: if `gamma` or `lam` lies outside [0, 1], or the batch has no values.
    """
    check_fraction("gamma", gamma)
    check_fraction("lam", lam)
    if batch.values is None:
        raise AdvantageError("the batch has no values: give the critic's value at each turn's first token")
    next_values = np.append(batch.values, 0.0)[batch.following]
    return discounted_sums(batch, batch.rewards + gamma * next_values - batch.values, gamma * lam)
