"""A compact view of GuessTheNumber, and random play that reads it now and then."""

from __future__ import annotations

import random
import re
from typing import Any

from gem_core.env import Env, ResetResult, StepResult, Wrapper

POSSIBLE = 1 / 3
"""The share of random guesses that the hints leave possible, besides those that are so by chance."""
HINT = re.compile(r"(higher|lower) than (\d+)")


class Bounds(Wrapper):
    """Shows the smallest and the largest number that the hints leave, as `07 23`, and nothing else.

    It says nothing that the hints did not say, but it does the bookkeeping that a longer memory would do.
    """

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self._low = self._high = 0

    def reset(self, seed: int | None = None, **options: Any) -> ResetResult:
        """All numbers are left."""
        _, info = self.env.reset(seed=seed, **options)
        game: Any = self.unwrapped
        self._low, self._high = game.min_number, game.max_number
        return self._shown(), info

    def step(self, action: str) -> StepResult:
        """Take over the hint."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if hint := HINT.search(observation):
            number = int(hint[2])
            if hint[1] == "higher":
                self._low = max(self._low, number + 1)
            else:
                self._high = min(self._high, number - 1)
        kept = {name: value for name, value in info.items() if name not in ("suffix", "prefix")}
        return self._shown(), reward, terminated, truncated, kept

    def _shown(self) -> str:
        return f"{self._low:02d} {self._high:02d}\n"


class SomePossible(Bounds):
    """`Bounds`, whose random guesses are possible ones, evenly drawn, in `POSSIBLE` of the turns.

    A model that has read only blind guesses has to find out by rare rewards that the two numbers which it is shown have
    to do with its guesses. Which possible guess is better, the play does not show.
    """

    def reset(self, seed: int | None = None, **options: Any) -> ResetResult:
        """Begin an episode."""
        # Not the seed itself, from which the game has drawn its number.
        self._draw = random.Random(f"possible {seed}")
        return super().reset(seed=seed, **options)

    def sample_random_action(self) -> str:
        """A possible number, or any that was not guessed."""
        if self._draw.random() < POSSIBLE:
            return f"\\boxed{{{self._draw.randint(self._low, self._high)}}}"
        return self.env.sample_random_action()
