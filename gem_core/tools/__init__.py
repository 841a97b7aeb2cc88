"""Tools: what a policy may call in the middle of an episode.

    from gem_core import make
    from gem_core.tools import ToolEnv

    env = ToolEnv(make("math:Sample"), ["python:Interpreter"], max_tool_uses=5)

A `Tool` offers one or more `Function`s. A `Toolbox` holds tools for many environments and calls them within their
limits; a `ToolSession` is one environment's use of a toolbox. `ToolEnv` wraps an environment: a response that contains
a call goes to the tools, every other response to the environment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gem_core.tool import CallContext, Function, Tool, ToolResult
from gem_core.tools._calls import Form, ParsedCall, find_call, written
from gem_core.tools._env import LAST_USE, ToolEnv, listed
from gem_core.tools._functions import FunctionTool
from gem_core.tools._session import ToolSession
from gem_core.tools._toolbox import Toolbox
from gem_core.upstream import no_attribute

__all__ = [
    "LAST_USE",
    "CallContext",
    "Form",
    "Function",
    "FunctionTool",
    "ParsedCall",
    "Tool",
    "ToolEnv",
    "ToolResult",
    "ToolSession",
    "Toolbox",
    "find_call",
    "listed",
    "written",
]


if not TYPE_CHECKING:  # a type checker finds the names that do not exist

    def __getattr__(name: str) -> Any:
        raise no_attribute(__name__, name)
