"""The Python tool."""

from __future__ import annotations

from gem_compat.tools.registered_tool import RegisteredTool


class PythonCodeTool(RegisteredTool):
    """Runs the first Python block of a response, in a sandbox.

    Args:
        timeout: seconds that a program may run.
        sandbox_type: accepted and not used: programs are always confined.
        keep_error_last_line: of standard error, show the last line only.
    """

    tool_type = "python_code"

    def __init__(self, timeout: float = 5, sandbox_type: str = "none", keep_error_last_line: bool = False) -> None:
        super().__init__("python:Interpreter", timeout=float(timeout), last_error_line=keep_error_last_line)
