"""What the tests of MCP servers share."""

from __future__ import annotations

from typing import Any

from gem_core.env import Env, ResetResult, StepResult
from gem_core.tools import Toolbox, ToolResult, ToolSession
from gem_core.tools._calls import ParsedCall


class Question(Env):
    """A question that any text answers."""

    def reset(self, seed: int | None = None, **options: Any) -> ResetResult:
        super().reset(seed=seed)
        return "What is 2 + 3?", {}

    def step(self, action: str) -> StepResult:
        return "", float("5" in action), True, False, {}

    def sample_random_action(self) -> str:
        return "5"


class User:
    """Calls the functions of a toolbox as an environment does."""

    def __init__(self, toolbox: Toolbox) -> None:
        self.session = ToolSession(toolbox)
        self.toolbox = toolbox
        self.session.begin()

    def __call__(self, function: str, **arguments: Any) -> str:
        """The text of a call that succeeds."""
        result = self.result(function, **arguments)
        assert not result.error, result.text
        return result.text

    def error(self, function: str, **arguments: Any) -> str:
        """The text of a call that fails."""
        result = self.result(function, **arguments)
        assert result.error, result.text
        return result.text

    def result(self, function: str, **arguments: Any) -> ToolResult:
        return self.session.call(ParsedCall(function, 0, arguments))
