"""An estimator for matches: each role has a baseline of its own that lasts from batch to batch."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

import numpy as np

from gem_core.advantages._groups import moments_by_key
from gem_core.advantages._ranks import Gather, gather_local
from gem_core.advantages._returns import returns_to_go
from gem_core.errors import AdvantageError
from gem_core.turn_batch import FloatArray, TurnBatch


def rae(
    batch: TurnBatch,
    *,
    gamma: float = 1.0,
    gather: Gather = gather_local,
    decay: float = 0.95,
    memory: MutableMapping[str, Any] | None = None,
) -> FloatArray:
    """Role-conditioned advantage estimation, RAE (SPIRAL, arXiv 2506.24119): R - baseline of the role.

    The baseline of a role is an exponential moving average of its returns. SPIRAL updates it once per episode, before
    that episode's advantage, so its numbers depend on the order of the episodes. Here a batch with n episodes of a role
    updates the baseline once, to `decay ** n` times its old value plus the rest of the mean of the n returns, and all n
    episodes get the new one. The first batch of a role sets the baseline to its mean. All turns of an episode get the
    same number.

    Args:
        batch: N turns of this rank; without roles, all episodes have the same one.
        gamma: discount per turn, in [0, 1].
        gather: called once.
        decay: the weight of the old baseline after one more episode, in [0, 1).
        memory: where the baselines stay between the batches of a training; the same on all ranks. Without it, a batch
            stands alone.

    Returns:
        float (N,), in the order of the batch and the unit of the rewards.

    Raises:
        AdvantageError: if `gamma` or `decay` lies outside its range.
    """
    if not 0 <= decay < 1:
        raise AdvantageError(f"decay={decay} lies outside [0, 1)")
    kept_before: MutableMapping[str, Any] = {} if memory is None else memory
    baselines: dict[int, float] = kept_before.setdefault("rae", {})
    first = batch.first_turns
    returns = returns_to_go(batch, gamma)[first]
    roles = np.zeros(len(first), dtype=np.int64) if batch.role is None else batch.role[first]
    for (role,), found in moments_by_key(roles[None], returns, gather).items():
        kept = decay**found.count if role in baselines else 0.0
        baselines[role] = kept * baselines.get(role, 0.0) + (1 - kept) * found.mean
    own = np.array([baselines[role] for role in roles.tolist()], dtype=np.float64)
    return (returns - own)[batch.episode_row]
