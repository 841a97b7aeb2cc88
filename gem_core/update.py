"""What a process trained on in one update; the argument of the `gem_update` hook."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gem_core.turn_batch import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Update:
    """The turns that one process trained on: one entry per turn, N in all, of E episodes.

    Numbers per token are those of the weights before the update, at the loss's temperature. Updates may share episodes.
    """

    number: int
    """Counted from 1 over a run and the runs that resume it."""
    episodes: Sequence[str]
    """(E,), `Episode.id` of each episode."""
    episode: IntArray
    """(N,), the index of the turn's episode in `episodes`."""
    position: IntArray
    """(N,), the position of the turn in its episode."""
    task_id: IntArray
    """(N,), `Episode.task_id` of the turn's episode. The agents of a match share it; estimators keep them apart."""
    advantage: FloatArray
    """(N,), as the loss used it."""
    return_to_go: FloatArray
    """(N,), the discounted sum of the rewards from this turn on; the critic's target where there is a critic."""
    logprobs: Sequence[NDArray[np.floating]] | None = None
    """(N,), for each turn the trainer's log-probability of each sampled token."""
    entropies: Sequence[NDArray[np.floating]] | None = None
    """(N,), for each turn the entropy of the trainer's distribution at each sampled token, in nats."""
    rank: int = 0
    """The process that trained on these turns; each process reports its own."""
    ranks: int = 1
    """How many processes train."""
    version: int | None = None
    """Updates of the policy before this one, if `number` counts batches of several; otherwise `None`."""
