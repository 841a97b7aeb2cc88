"""Totals of an episode."""

from __future__ import annotations

from typing import Any

from gem_core.env import Env, Info, ResetResult, StepResult, Wrapper


class EpisodeStatistics(Wrapper):
    """Adds `turn_count` and `episode_return` to every info, and the last episode's totals to a reset's info.

    Keys: `turn_count` (int), `episode_return` (float, undiscounted sum of rewards), and after the first episode
    `prev_ep_turn_count` and `prev_ep_return`.
    """

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self._turns = 0
        self._return = 0.0
        self._previous: Info = {}

    def reset(self, seed: int | None = None, **options: Any) -> ResetResult:
        """Start an episode with zero totals."""
        if self._turns:
            self._previous = {"prev_ep_turn_count": self._turns, "prev_ep_return": self._return}
        self._turns, self._return = 0, 0.0
        observation, info = self.env.reset(seed=seed, **options)
        return observation, {**info, **self._totals(), **self._previous}

    def step(self, action: str) -> StepResult:
        """Play one turn and count it."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._turns += 1
        self._return += reward
        return observation, reward, terminated, truncated, {**info, **self._totals()}

    def _totals(self) -> Info:
        return {"turn_count": self._turns, "episode_return": self._return}
