"""Upstream's `ReasoningGymEnv`: a question of a reasoning-gym data set."""

from __future__ import annotations

from typing import Any

from gem_compat.envs.registration import make
from gem_core.env import Env


def ReasoningGymEnv(name: str, size: int = 500, seed: int = 42, **settings: Any) -> Env:
    """Build `rg:<name>` with `size` entries of the seed `seed`. Raises as `make`."""
    return make(f"rg:{name}", size=size, seed=seed, **settings)
