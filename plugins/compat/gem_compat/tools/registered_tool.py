"""A tool of this project behind upstream's interface."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from gem_compat.tools.base_tool import BaseTool
from gem_core.registry import make_tool
from gem_core.tools import Toolbox, ToolSession, find_call, listed


class RegisteredTool(BaseTool):
    """Opens the tool of an id at its first use; environments may share it.

    Args:
        tool_id: an id such as `"python:Interpreter"`.
        arguments: keyword arguments of `make_tool`.
    """

    def __init__(self, tool_id: str, **arguments: Any) -> None:
        super().__init__()
        self._tool_id, self._arguments = tool_id, arguments

    @cached_property
    def _session(self) -> ToolSession:
        session = ToolSession(Toolbox([make_tool(self._tool_id, **self._arguments)]))
        session.begin()
        return session

    def instruction_string(self) -> str:
        """How a model calls the tool. Raises `ToolError` where it cannot be opened."""
        return "\n".join(listed(self._session.functions))

    def execute_action(self, action: str) -> tuple[bool, bool, str, str]:
        """Answer the first call in a response. Raises `ToolError` where the tool cannot be opened."""
        functions = self._session.functions
        call = find_call(action, functions, "text")
        if call is None:
            return False, True, "", ""
        result = self._session.call(call)
        reply = next((function.reply for function in functions if function.name == call.function), "{}")
        return True, result.error, reply.replace("{}", result.text, 1), action[: call.end]

    def close(self) -> None:
        """Close the tool. The next use opens it again."""
        if "_session" in vars(self):
            vars(self).pop("_session").close()
