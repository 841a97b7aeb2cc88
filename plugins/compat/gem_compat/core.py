"""Upstream's base classes, and the type variables of its signatures."""

from __future__ import annotations

from typing import Any, TypeVar

import gem_core.env
from gem_compat.utils.seeding import set_seed
from gem_core.env import ResetResult

__all__ = ["ActType", "Env", "EnvWrapper", "ObsType"]

ObsType = TypeVar("ObsType")
ActType = TypeVar("ActType")


class Env(gem_core.env.Env):
    """An environment as upstream's users write it: `reset(seed)` and `step(action)` are enough.

    `super().reset(seed)` also seeds the global generators, which such environments draw from. Environments of this
    project have generators of their own (`gem_core.Env.rng`). A step after the end of an episode is the environment's
    business.
    """

    plays_on = True

    def reset(self, seed: int | None = None, **options: Any) -> ResetResult:
        """Seed all generators; `None` leaves them as they are."""
        if seed is not None:
            set_seed(seed)
        return super().reset(seed=seed, **options)

    def sample_random_action(self) -> str:
        """Raises `NotImplementedError`, where the environment has none."""
        raise NotImplementedError(f"{self!r} has no sample_random_action(); write one to play it at random")


class EnvWrapper(gem_core.env.Wrapper):
    """A wrapper as upstream's users write it, which passes a step after the end of an episode on."""

    plays_on = True
