"""Tools: what a policy may call in the middle of an episode.

    from gem_core import make
    from gem_core.tools import ToolEnv

    env = ToolEnv(make("math:Sample"), ["python:Interpreter"], max_tool_uses=5)

A `Tool` offers one or more `Function`s. A `Toolbox` holds tools for many environments, and calls them within their
limits. `ToolEnv` wraps an environment: responses that contain a call go to the tools, all others to the environment.
"""

from gem_core.tools.env import ToolEnv
from gem_core.tools.functions import FunctionTool
from gem_core.tools.tool import CallContext, Function, Tool, ToolResult
from gem_core.tools.toolbox import Toolbox

__all__ = ["CallContext", "Function", "FunctionTool", "Tool", "ToolEnv", "ToolResult", "Toolbox"]
