"""Upstream's `QaEnv`: a question whose answer is a few words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gem_qa.env
from gem_compat.questions import Questions
from gem_qa import verify
from gem_questions import BOX, TAGS


class QaEnv(Questions, gem_qa.env.QaEnv):
    """A question of `qa:Dataset`, with the form of the answer in front, as upstream shows it. `answer` may be set."""

    ours = gem_qa.env.QaEnv

    def named(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The instruction becomes a part of the question."""
        found = super().named(arguments)
        told = found.pop("instruction") or (BOX if found.get("boxed") else TAGS).text
        return {"template": f"{told}\n\nQuestion: {{question}}\n", **found, "instruction": False}

    @staticmethod
    def check_correct(model_answer: str, gt_answer: Any) -> bool:
        """Is this an accepted answer?"""
        return verify(model_answer, gt_answer).correct
