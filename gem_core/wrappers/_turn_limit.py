"""A limit on the turns of an episode."""

from __future__ import annotations

from typing import Any

from gem_core.env import Env, ResetResult, StepResult, Wrapper


class TurnLimit(Wrapper):
    """Truncates an episode after `max_turns` turns.

    Raises:
        ValueError: `max_turns` is below 1.
    """

    def __init__(self, env: Env, max_turns: int) -> None:
        if max_turns < 1:
            raise ValueError(f"max_turns must be at least 1, not {max_turns}")
        super().__init__(env)
        self.max_turns = max_turns
        self._turn = 0

    def reset(self, seed: int | None = None, **options: Any) -> ResetResult:
        """Start an episode with a count of zero."""
        self._turn = 0
        return self.env.reset(seed=seed, **options)

    def step(self, action: str) -> StepResult:
        """Play one turn; the last allowed turn is truncated."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._turn += 1
        return observation, reward, terminated, truncated or (self._turn >= self.max_turns and not terminated), info
