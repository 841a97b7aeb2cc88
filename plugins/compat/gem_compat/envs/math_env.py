"""Upstream's `MathEnv`: a question whose answer is a number or an expression."""

from __future__ import annotations

from typing import Any

import gem_math.env
from gem_compat.questions import Questions
from gem_core.env import Info
from gem_math import verify
from gem_questions import Row, Verdict


class MathEnv(Questions, gem_math.env.MathEnv):
    """A question of `math:Dataset`. `answer` may be set, and the next step is graded by it, with or without a reset."""

    ours = gem_math.env.MathEnv
    _of_row: Any = None

    def begin(self, row: Row) -> Info:
        """Keep the row's own answer."""
        self._of_row = self.answer
        return super().begin(row)

    def grade(self, action: str) -> Verdict:
        """Compare with the answer. One that was set belongs to no question that is known."""
        if self.answer is not self._of_row:
            self.asked = ""
        return super().grade(action)

    @staticmethod
    def check_correct(model_answer: str, gt_answer: Any) -> bool:
        """Is the answer in the last box of a response right?"""
        return "\\boxed" in model_answer and verify(model_answer, gt_answer).correct
