"""Ranks: the only way in which an estimator sees the turns of other processes.

The core uses no collective library. Adapters that train on many ranks pass a `Gather` built on their framework's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from gem_core.turn_batch import FloatArray

Gather: TypeAlias = Callable[[FloatArray], Sequence[FloatArray]]
"""Takes this rank's one-dimensional float64 array and returns every rank's, in the same order on all ranks.

The arrays may differ in length and may be empty. `Gather` is a collective operation: an estimator calls it equally
often on every rank, including ranks without turns (`gigpo` twice, `reinforce` and `gae` never, the others
once).
"""


def gather_local(array: FloatArray) -> Sequence[FloatArray]:
    """The `Gather` of a single rank: a list of `array` alone."""
    return [array]
