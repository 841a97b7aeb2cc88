"""Estimators that compare the episodes of a task: GRPO, Dr. GRPO, RLOO, GRPO per turn, and GiGPO.

In the first three an episode counts once, with its discounted return G_0 from the first turn, whatever its number of
turns, and all its turns get the same number. The others compare turns. A group may be spread over ranks. An episode
without turns belongs to no group.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

import numpy as np

from gem_core.advantages._moments import Moments
from gem_core.advantages._ranks import Gather, gather_local
from gem_core.advantages._returns import returns_to_go
from gem_core.errors import AdvantageError
from gem_core.turn_batch import FloatArray, IntArray, TurnBatch

_log = logging.getLogger("gem_core.advantages")

Key: TypeAlias = tuple[int, ...]
"""What numbers are compared by: a group, or a group with the index or the state of a turn."""


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


def turn_grpo(batch: TurnBatch, *, gamma: float = 1.0, gather: Gather = gather_local) -> FloatArray:
    """GRPO per turn index: (G_t - mean) / (std + 1e-9) over the turns t of all episodes of the group.

    G_t is the discounted return from turn t on, so a turn is not charged for rewards before it. The standard deviation
    is that of the population. A turn that no other episode of the group reached, and turns of equal returns, get zeros.

    The estimate is biased. The mean includes the turn's own return, which shrinks the gradient by 1/n as in GRPO. The
    division by a standard deviation for each index gives turns with similar returns more weight than a gradient of the
    expected return would. Only episodes that are still running at turn t are compared there, and the policy decides
    which these are: the last turns of the longest episode get no signal. Turns of one index are usually in different
    states after the first turn; this adds variance, not bias. `rebn_loo` has none of these biases.

    Arguments and errors are those of `grpo`; the result is in standard deviations of the turns compared.
    """
    returns = returns_to_go(batch, gamma)
    keys = np.stack([_groups(batch), batch.turn])
    return _standardized(keys, returns, moments_by_key(keys, returns, gather))


def gigpo(batch: TurnBatch, *, gamma: float = 1.0, gather: Gather = gather_local, weight: float = 1.0) -> FloatArray:
    """GiGPO (arXiv 2505.10978): the advantage of the episode plus `weight` times that of the step.

    The episode's is (R - group mean) / (group std + 1e-9) with the undiscounted return R. The step's is the same
    formula with the discounted return G_t from the turn on, over all turns of the group in the same state (the paper's
    anchor state), in any episode and at any index. Turns are in the same state if their observations are equal.
    Standard deviations are those of the population. Equal returns, and a turn whose state occurs once, give zero. So
    without repeated observations the result is that of `grpo` with gamma 1.

    An observation must show the whole state for this to be an advantage of the action. An episode that comes back to a
    state counts there several times.

    Args:
        batch: N turns of this rank, with their groups and states.
        gamma: discount per turn, in [0, 1], of the step's returns.
        gather: called twice.
        weight: weight of the step's advantage; the paper uses 1.

    Returns:
        float (N,), in the order of the batch, in standard deviations.

    Raises:
        AdvantageError: if `gamma` lies outside [0, 1], or the batch has no groups or no states.
    """
    returns = returns_to_go(batch, gamma)
    if batch.state is None:
        raise AdvantageError("the batch has no states: give `state`, a number for the observation of each turn")
    episodes = grpo(batch, gather=gather)
    keys = np.stack([_groups(batch), batch.state])
    return episodes + weight * _standardized(keys, returns, moments_by_key(keys, returns, gather))


def _deviations_from_others(group: Moments, returns: FloatArray) -> FloatArray:
    # With n episodes, R - mean of the others = n / (n - 1) * (R - mean of all). A single episode deviates by 0.
    return group.deviations(returns) * (group.count / max(group.count - 1, 1))


def _compare(
    batch: TurnBatch, gamma: float, gather: Gather, formula: Callable[[Moments, FloatArray], FloatArray]
) -> FloatArray:
    keys = _groups(batch)[None, batch.first_turns]
    returns = returns_to_go(batch, gamma)[batch.first_turns]
    moments = moments_by_key(keys, returns, gather)
    # A group of one is normal if the environments of its other episodes failed before the first turn. A batch of only
    # such groups is probably a mistake, but must not stop a run whose environments all failed at once.
    if moments and all(found.count == 1 for found in moments.values()):
        _log.warning(
            "each of the %d groups has only one episode with turns, so all advantages are zero. Run at least two "
            "episodes per group, or use 'rebn'.",
            len(moments),
        )
    return _by_key(keys, returns, moments, formula)[batch.episode_row]


def _groups(batch: TurnBatch) -> IntArray:
    if batch.group_key is None:
        raise AdvantageError("the batch has no groups: give `group_key`, which episodes of one task share")
    return batch.group_key


def _standardized(keys: IntArray, returns: FloatArray, moments: Mapping[Key, Moments]) -> FloatArray:
    return _by_key(keys, returns, moments, Moments.standardized)


def _by_key(
    keys: IntArray,
    returns: FloatArray,
    moments: Mapping[Key, Moments],
    formula: Callable[[Moments, FloatArray], FloatArray],
) -> FloatArray:
    """The formula for each number with the moments of its key. Shapes (columns, M) and (M,)."""
    advantages = np.empty_like(returns)
    for key, members in _members(keys):
        advantages[members] = formula(moments[key], returns[members])
    return advantages


def moments_by_key(keys: IntArray, returns: FloatArray, gather: Gather) -> dict[Key, Moments]:
    """The moments of the numbers of each key, over all ranks.

    Args:
        keys: (columns, M), what the numbers of this rank are compared by.
        returns: (M,).
        gather: called once.
    """
    parts = [_unpack(packed, len(keys)) for packed in gather(_pack(keys, returns))]
    keys = np.concatenate([own for own, _ in parts], axis=1)
    returns = np.concatenate([own for _, own in parts])
    return {key: Moments.of(returns[members]) for key, members in _members(keys)}


def _members(keys: IntArray) -> Iterator[tuple[Key, IntArray]]:
    """Each key, and the columns of `keys` that equal it, in ascending order."""
    order = np.lexsort(keys)
    ordered = keys[:, order]
    starts = np.flatnonzero((ordered[:, 1:] != ordered[:, :-1]).any(axis=0)) + 1
    for members in np.split(order, starts) if order.size else []:
        yield tuple(keys[:, members[0]].tolist()), members


def _pack(keys: IntArray, returns: FloatArray) -> FloatArray:
    # A float64 holds integers up to 2^53 only, and a key may be a 64-bit hash, so it is sent in two halves.
    return np.concatenate([(keys >> 32).ravel(), (keys & 0xFFFFFFFF).ravel(), returns], dtype=np.float64)


def _unpack(packed: FloatArray, columns: int) -> tuple[IntArray, FloatArray]:
    *halves, returns = np.split(packed, 2 * columns + 1)
    high, low = (np.stack(half).astype(np.int64) for half in (halves[:columns], halves[columns:]))
    return (high << 32) | low, returns
