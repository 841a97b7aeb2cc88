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
    _of_row: Row = {}  # noqa: RUF012  # nobody changes it

    def begin(self, row: Row) -> Info:
        """Show the tests as the data has them."""
        info = super().begin(row)
        self._of_row = row
        self.tests = _as_object(self.answer)
        return info

    def grade(self, action: str) -> Verdict:
        """Run the tests that are set now."""
        tests = self.answer = self.tests
        row = {**self._of_row, self.columns[1]: tests}
        if (refused := self.refusal(row)) is not None:
            raise EnvError(f"tests: {refused}")
        super().begin(row)
        try:
            return super().grade(action)
        finally:
            self.tests = tests


def _as_object(tests: Any) -> Any:
    try:
        return json.loads(tests) if isinstance(tests, str) else tests
    except ValueError:
        return tests
