"""Tools of MCP servers (Model Context Protocol), for the policy of any environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_core.lazy import lazy_exports

if TYPE_CHECKING:
    from gem_mcp.tool import MCPTool as MCPTool

_HOME = {
    "MCPTool": "tool",
}

__all__ = [
    "MCPTool",
]

__getattr__, __dir__ = lazy_exports(__name__, _HOME)
