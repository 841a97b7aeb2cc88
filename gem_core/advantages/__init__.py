"""Advantages: one number per turn, from rewards alone or with a critic's values.

A `TurnBatch` holds the turns of one rank; an estimator turns it into a float (N,) array in the order of the batch.
Communication between ranks goes through a `Gather`, so this package is independent of training frameworks.
"""

from gem_core.advantages._compute import advantages_and_returns, compute_advantages
from gem_core.advantages._estimators import rebn, rebn_loo, reinforce
from gem_core.advantages._gae import gae
from gem_core.advantages._groups import drgrpo, gigpo, grpo, rloo, turn_grpo
from gem_core.advantages._moments import Moments
from gem_core.advantages._ranks import Gather, gather_local
from gem_core.advantages._returns import returns_to_go
from gem_core.advantages._roles import rae
from gem_core.turn_batch import TurnBatch

__all__ = [
    "Gather",
    "Moments",
    "TurnBatch",
    "advantages_and_returns",
    "compute_advantages",
    "drgrpo",
    "gae",
    "gather_local",
    "gigpo",
    "grpo",
    "rae",
    "rebn",
    "rebn_loo",
    "reinforce",
    "returns_to_go",
    "rloo",
    "turn_grpo",
]
