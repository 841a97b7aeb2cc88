"""A corridor that pays each step: the dense environment of the study."""

from __future__ import annotations

from typing import Any

import gem_core
from gem_core.env import ResetResult, StepResult
from gem_games.corridor import Corridor

DENSE = "recipe:DenseCorridor-v0"
NEARER = 0.1
"""What a step towards the goal pays. A step away costs as much."""


class DenseCorridor(Corridor):
    """`Corridor`, where each legal step before the last one pays `NEARER` towards the goal and costs it otherwise."""

    def reset(self, seed: int | None = None, **options: Any) -> ResetResult:
        """Begin, and measure the way."""
        result = super().reset(seed=seed, **options)
        self._left = abs(self.goal - self.player)
        return result

    def step(self, action: str) -> StepResult:
        """Move one cell."""
        observation, reward, terminated, truncated, info = super().step(action)
        left = abs(self.goal - self.player)
        if not terminated:
            reward += NEARER * (self._left - left)
        self._left = left
        return observation, reward, terminated, truncated, info


gem_core.register(DENSE, "recipes.frameworks.corridor:DenseCorridor")
