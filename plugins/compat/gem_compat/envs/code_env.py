"""Upstream's `CodeEnv`: a problem whose answer is a program."""

from __future__ import annotations

import json
from typing import Any

import gem_code.env
from gem_compat.questions import Questions
from gem_core.env import Info
from gem_core.errors import EnvError
from gem_questions import Row, Verdict


class CodeEnv(Questions, gem_code.env.CodeEnv):
    """A problem of `code:Dataset`. `tests` are as the data has them, and may be set before a step."""

    ours = gem_code.env.CodeEnv
    tests: Any

    def begin(self, row: Row) -> Info:
        """Show the tests as the data has them."""
        info = super().begin(row)
        self.tests = json.loads(self.answer) if isinstance(self.answer, str) else self.answer
        return info

    def grade(self, action: str) -> Verdict:
        """Run the tests that are set now."""
        tests = self.answer = self.tests
        if not self.accepts(tests):
            raise EnvError(f"tests must hold {self.answer_form}, and hold {tests!r:.80}")
        super().begin({})
        try:
            return super().grade(action)
        finally:
            self.tests = tests
