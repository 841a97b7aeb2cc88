"""Estimators that compare a turn with the whole batch: REINFORCE and ReBN.

They return one number per turn, which an adapter spreads over the turn's response tokens.
"""

from __future__ import annotations

import numpy as np

from gem_core.advantages._moments import Moments
from gem_core.advantages._ranks import Gather, gather_local
from gem_core.advantages._returns import returns_to_go
from gem_core.turn_batch import FloatArray, TurnBatch


def reinforce(batch: TurnBatch, *, gamma: float = 1.0, gather: Gather = gather_local) -> FloatArray:
    """REINFORCE (Williams, Machine Learning 8, 1992): the return-to-go of each turn, unchanged.

    Args:
        batch: N turns of this rank.
        gamma: discount per turn, in [0, 1].
        gather: not called; every estimator takes it.

    Returns:
        float (N,), in the order of the batch and the unit of the rewards.

    Raises:
        AdvantageError: if `gamma` lies outside [0, 1].
    """
    return returns_to_go(batch, gamma)


def rebn(batch: TurnBatch, *, gamma: float = 1.0, gather: Gather = gather_local) -> FloatArray:
    """Return batch normalization, ReBN (GEM, arXiv 2510.01051): (G - mean(G)) / (std(G) + 1e-9).

    Mean and population standard deviation run over all turns of all ranks. A constant batch gives zeros. The
    mean includes the turn's own episode, which biases the policy gradient by O(1/N); see `rebn_loo`.

    Args:
        batch: N turns of this rank.
        gamma: discount per turn, in [0, 1].
        gather: called once.

    Returns:
        float (N,), in the order of the batch, in standard deviations.

    Raises:
        AdvantageError: if `gamma` lies outside [0, 1].
    """
    returns = returns_to_go(batch, gamma)
    return Moments.over_ranks(returns, gather).standardized(returns)


def rebn_loo(batch: TurnBatch, *, gamma: float = 1.0, gather: Gather = gather_local) -> FloatArray:
    """ReBN (arXiv 2510.01051) whose mean leaves out the turn's own episode, as in RLOO (arXiv 2402.14740).

    The mean in `rebn` depends on the actions of the turn's own episode, also through its number of turns when
    the policy decides when to stop. The mean over all turns of all other episodes, on all ranks, does not, so
    it adds no bias to the policy gradient. The standard deviation is that of `rebn`. A batch of a single episode gives
    zeros, as does a constant batch.

    Args:
        batch: N turns of this rank.
        gamma: discount per turn, in [0, 1].
        gather: called once.

    Returns:
        float (N,), in the order of the batch, in standard deviations.

    Raises:
        AdvantageError: if `gamma` lies outside [0, 1].
    """
    returns = returns_to_go(batch, gamma)
    moments = Moments.over_ranks(returns, gather)
    scores, rows = moments.standardized(returns), batch.episode_row
    others = moments.count - np.bincount(rows)[rows]
    if not others.all():
        return np.zeros_like(returns)
    # All scores sum to zero, so the scores of the other episodes sum to minus those of this episode.
    return scores + np.bincount(rows, weights=scores)[rows] / others
