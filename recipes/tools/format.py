"""Random play that shows how a program and an answer are written, and how numbers are copied."""

from __future__ import annotations

import random
import re
from typing import Any

from gem_core.env import Env, ResetResult, StepResult, Wrapper
from recipes.tools.calculation import SIGNS, USES

NUMBER = re.compile(r"-?\d+")


class Format(Wrapper):
    """Its random actions copy numbers, and know nothing else.

    A program has the two numbers of the question, and any of the three operators. An answer is what the last program
    printed, or one of the question's numbers where there was none. Which operator belongs to which word, and that a
    program helps, is left to learn.
    """

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self._draw = random.Random(0)
        self._shown: list[str] = []
        self._programs = 0

    def reset(self, seed: int | None = None, **options: Any) -> ResetResult:
        """Begin an episode."""
        observation, info = self.env.reset(seed=seed, **options)
        # Not the seed itself, from which the environment has drawn the operator.
        self._draw = random.Random(f"format {seed}")
        self._shown = NUMBER.findall(observation)
        self._programs = 0
        return observation, info

    def step(self, action: str) -> StepResult:
        """Remember the numbers that are shown."""
        result = self.env.step(action)
        self._shown += NUMBER.findall(result[0])
        return result

    def sample_random_action(self) -> str:
        """A program or an answer, each half of the time while a program is left."""
        if self._programs < USES and self._draw.random() < 0.5:
            self._programs += 1
            one, other = self._shown[:2]
            return f"<python>print({one}{self._draw.choice([*SIGNS.values()])}{other})</python>"
        return f"\\boxed{{{self._shown[-1] if self._programs else self._draw.choice(self._shown)}}}"
