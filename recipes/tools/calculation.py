"""Calculations with two numbers, too many to memorize, and the Python tool for them."""

from __future__ import annotations

import functools
import re
from typing import Any

import gem_core
from gem_core.env import Env, ResetResult, StepResult
from gem_core.tools import Toolbox, ToolEnv
from gem_python import PythonTool

CALCULATION = "recipe:Calculation-v0"
SIGNS = {"plus": "+", "minus": "-", "times": "*"}
"""The words of a question, and the operators of Python."""
SMALLEST, LARGEST = 10, 99
USES = 2
"""Programs of an episode."""
PAID = 0.1
"""What each program pays that ends well, in the cell with a reward for tool use."""
ANSWER = re.compile(r"\\boxed\{(-?\d+)\}")


class Calculation(Env):
    """One question, for example `47 times 58`. Answer: the last `\\boxed{N}` of the text.

    There are 24,300 questions. The right number pays 1; everything else pays 0. Each answer terminates.
    """

    def reset(self, seed: int | None = None, **options: Any) -> ResetResult:
        """Draw two numbers and a word."""
        super().reset(seed=seed)
        self.numbers = self.rng.randint(SMALLEST, LARGEST), self.rng.randint(SMALLEST, LARGEST)
        self.word = self.rng.choice([*SIGNS])
        return f"{self.numbers[0]} {self.word} {self.numbers[1]}\n", {}

    @property
    def result(self) -> int:
        """The right answer."""
        one, other = self.numbers
        return {"plus": one + other, "minus": one - other, "times": one * other}[self.word]

    def step(self, action: str) -> StepResult:
        """Grade an answer."""
        answers = ANSWER.findall(action)
        right = bool(answers) and int(answers[-1]) == self.result
        info = {"success": right, **({} if answers else {"invalid_action": True})}
        return ("Right.\n" if right else "Wrong.\n"), float(right), True, False, info

    def sample_random_action(self) -> str:
        """One of the two numbers of the question."""
        return f"\\boxed{{{self.rng.choice(self.numbers)}}}"


@functools.cache
def _tools() -> Toolbox:
    """One sandbox for all environments of a process."""
    return Toolbox([PythonTool()])


def with_python(env: Env) -> ToolEnv:
    """The tool, with a short instruction for a tiny model."""
    return ToolEnv(env, _tools(), max_tool_uses=USES, instruction="python\n")


def with_paid_python(env: Env) -> ToolEnv:
    """The same, and each program that ends well pays `PAID`."""
    return ToolEnv(env, _tools(), max_tool_uses=USES, instruction="python\n", tool_success_reward=PAID)


def with_explained_python(env: Env) -> ToolEnv:
    """The tool for a language model: the first observation says how it is called."""
    return ToolEnv(env, _tools())


gem_core.register(CALCULATION, "recipes.tools.calculation:Calculation")
