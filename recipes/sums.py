"""Sums in plain words: one question, one answer."""

from __future__ import annotations

import itertools
import re
from typing import Any, Literal

import gem_core
from gem_core.env import Env, ResetResult, StepResult

SUM = "recipe:PlainSum-v0"
HELD_OUT_SUM = "recipe:PlainSum-v0-test"
LARGEST = 9
_NUMBER = re.compile(r"[0-9]+")


class PlainSum(Env):
    """The sum of two numbers up to `LARGEST`. Answer: the last number in the text.

    The right number pays 1; everything else pays 0. Each answer terminates.

    Args:
        split: a quarter of the pairs are in `test`, and the others in `train`.
    """

    def __init__(self, split: Literal["train", "test"] = "train") -> None:
        pairs = itertools.product(range(1, LARGEST + 1), repeat=2)
        self._pairs = [pair for pair in pairs if ((pair[0] + 2 * pair[1]) % 4 == 0) is (split == "test")]

    def reset(self, seed: int | None = None, **options: Any) -> ResetResult:
        """Draw two numbers."""
        super().reset(seed=seed)
        self.numbers = self.rng.choice(self._pairs)
        return f"What is {self.numbers[0]} plus {self.numbers[1]}?", {}

    def step(self, action: str) -> StepResult:
        """Grade an answer."""
        found = _NUMBER.findall(action)
        right = bool(found) and found[-1] == str(sum(self.numbers))
        return "", float(right), True, False, {"success": right, **({} if found else {"invalid_action": True})}

    def sample_random_action(self) -> str:
        """Any sum."""
        return str(self.rng.randint(2, 2 * LARGEST))


gem_core.register(SUM, "recipes.sums:PlainSum")
gem_core.register(HELD_OUT_SUM, "recipes.sums:PlainSum", kwargs={"split": "test"})
