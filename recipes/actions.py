"""Random play that teaches the action format only."""

from __future__ import annotations

import random
from collections import deque
from typing import Any

from gem_core.env import Env, ResetResult, Wrapper

REMEMBERED = 200
"""How many actions of earlier episodes the wrapper chooses from."""
AT_FIRST = 20
"""How many actions it draws before the first episode, each in an episode of its own."""


class OtherAnswers(Wrapper):
    """Its random actions are those of other episodes, so they have the format but know nothing of this one.

    Random actions of some environments are right far too often: half of the time in reasoning-gym, always in Sudoku. A
    model that read such play would have learned answers before its training.
    """

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self._pool: deque[str] = deque(maxlen=REMEMBERED)
        self._draw = random.Random(0)

    def reset(self, seed: int | None = None, **options: Any) -> ResetResult:
        """Begin an episode, and remember an action of the one before."""
        if not self._pool:
            for number in range(AT_FIRST):
                self.env.reset(seed=number)
                self._pool.append(self.env.sample_random_action())
        self._draw = random.Random(seed)
        result = self.env.reset(seed=seed, **options)
        self._fresh = self.env.sample_random_action()
        return result

    def sample_random_action(self) -> str:
        """An action of an earlier episode."""
        chosen = self._draw.choice(self._pool)
        self._pool.append(self._fresh)
        self._fresh = self.env.sample_random_action()
        return chosen
