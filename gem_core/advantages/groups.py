"""Estimators that compare an episode with the other episodes of its task: GRPO, Dr. GRPO and RLOO.

An episode counts once, with its discounted return G_0 from the first turn, whatever its number of turns. All its turns
get the same number. A group may be spread over ranks. An episode without turns belongs to no group.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np

from gem_core.advantages.moments import Moments
from gem_core.advantages.ranks import Gather, gather_local
from gem_core.advantages.returns import returns_to_go
from gem_core.errors import AdvantageError
from gem_core.turn_batch import FloatArray, IntArray, TurnBatch

_log = logging.getLogger("gem_core.advantages")


def grpo(batch: TurnBatch, *, gamma: float = 1.0, gather: Gather = gather_local) -> FloatArray:
    """GRPO (DeepSeekMath, arXiv 2402.03300): (R - group mean) / (group std + 1e-9).

    The standard deviation is that of the population. A group of equal returns, or of a single
    episode, gives zeros.

    Args:
        batch: N turns of this rank, with their groups.
        gamma: discount per turn, in [0, 1].
        gather: called once.

    Returns:
        float (N,), in the order of the batch, in standard deviations of the group.

    Raises:
        AdvantageError: if `gamma` lies outside [0, 1], or the batch has no groups.
    """
    return _compare(batch, gamma, gather, Moments.standardized)


def drgrpo(batch: TurnBatch, *, gamma: float = 1.0, gather: Gather = gather_local) -> FloatArray:
    """Dr. GRPO (arXiv 2503.20783): R - group mean.

    Arguments and errors are those of `grpo`; the result is in the unit of the rewards.
    """
    return _compare(batch, gamma, gather, Moments.deviations)


def rloo(batch: TurnBatch, *, gamma: float = 1.0, gather: Gather = gather_local) -> FloatArray:
    """RLOO (arXiv 2402.14740): R - mean of the other episodes of the group.

    Arguments and errors are those of `grpo`; the result is in the unit of the rewards.
    """
    return _compare(batch, gamma, gather, _deviations_from_others)


def _deviations_from_others(group: Moments, returns: FloatArray) -> FloatArray:
    # With n episodes, R - mean of the others = n / (n - 1) * (R - mean of all). A single episode deviates by 0.
    return group.deviations(returns) * (group.count / max(group.count - 1, 1))


def _compare(
    batch: TurnBatch, gamma: float, gather: Gather, formula: Callable[[Moments, FloatArray], FloatArray]
) -> FloatArray:
    if batch.group is None:
        raise AdvantageError("the batch has no groups: give `group`, the task each episode started from")
    returns = returns_to_go(batch, gamma)[batch.first_turns]
    groups = batch.group[batch.first_turns]
    moments = moments_of_groups(groups, returns, gather)
    # A group of one is normal if the environments of its other episodes failed before the first turn. A batch of only
    # such groups is probably a mistake, but must not stop a run whose environments all failed at once.
    if moments and all(found.count == 1 for found in moments.values()):
        _log.warning(
            "each of the %d groups has only one episode with turns, so all advantages are zero. Run at least two "
            "episodes per group, or use 'rebn'.",
            len(moments),
        )
    advantages = np.empty_like(returns)
    for group in np.unique(groups).tolist():
        mine = groups == group
        advantages[mine] = formula(moments[group], returns[mine])
    return advantages[batch.episode_row]


def moments_of_groups(groups: IntArray, returns: FloatArray, gather: Gather) -> dict[int, Moments]:
    """The moments of each group of all ranks, from the groups and returns (E,) of this rank's episodes."""
    parts = gather(_pack(groups, returns))
    groups, returns = (np.concatenate(column) for column in zip(*map(_unpack, parts), strict=True))
    order = np.argsort(groups, kind="stable")
    ids, starts = np.unique(groups[order], return_index=True)
    members = np.split(returns[order], starts[1:])  # one empty part if no rank has turns, so zip is not strict
    return {group: Moments.of(part) for group, part in zip(ids.tolist(), members, strict=False)}


def _pack(groups: IntArray, returns: FloatArray) -> FloatArray:
    # A float64 holds integers up to 2^53 only, and a group id may be a 64-bit hash, so it is sent in two halves.
    return np.concatenate([groups >> 32, groups & 0xFFFFFFFF, returns], dtype=np.float64)


def _unpack(packed: FloatArray) -> tuple[IntArray, FloatArray]:
    high, low, returns = np.split(packed, 3)
    return (high.astype(np.int64) << 32) | low.astype(np.int64), returns
