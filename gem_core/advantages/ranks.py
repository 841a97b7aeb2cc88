"""Ranks: the one door through which an estimator sees the turns of other processes.

The core knows no collective library. Whoever trains on many ranks passes a `Gather` built on theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from gem_core.turn_batch import FloatArray

Gather: TypeAlias = Callable[[FloatArray], Sequence[FloatArray]]
"""Takes this rank's one-dimensional float64 array and returns every rank's, in the same order on all ranks.

The arrays may differ in length and may be empty. It is a collective operation: an estimator calls it equally
often on every rank, also on a rank that has no turns (`rebn`, `rebn_loo`, `grpo`, `drgrpo` and `rloo` once,
`reinforce` and `gae` never).
"""


def gather_local(array: FloatArray) -> Sequence[FloatArray]:
    """The `Gather` of a single rank: a list of `array` alone."""
    return [array]
