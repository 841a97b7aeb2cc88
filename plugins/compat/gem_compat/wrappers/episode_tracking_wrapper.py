"""Totals of an episode."""

from __future__ import annotations

from typing import Any

from gem_compat.core import EnvWrapper
from gem_core.env import Env, Info, ResetResult, StepResult


class EpisodeTrackingWrapper(EnvWrapper):
    """Adds `step_counter` and `cumulative_rewards` to every info, and the last episode's to a reset's info.

    Those of the last episode have `prev_ep_` before their names; before the first episode they are 0.
    """

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.step_counter = 0
        self.cumulative_rewards = 0.0

    def reset(self, seed: int | None = None, **options: Any) -> ResetResult:
        """Start an episode with zero totals."""
        previous = {f"prev_ep_{name}": total for name, total in self._totals().items()}
        observation, info = self.env.reset(seed=seed, **options)
        self.step_counter, self.cumulative_rewards = 0, 0.0
        return observation, {**info, **self._totals(), **previous}

    def step(self, action: str) -> StepResult:
        """Play one turn and count it."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.step_counter += 1
        self.cumulative_rewards += reward
        return observation, reward, terminated, truncated, {**info, **self._totals()}

    def _totals(self) -> Info:
        return {"step_counter": self.step_counter, "cumulative_rewards": self.cumulative_rewards}
