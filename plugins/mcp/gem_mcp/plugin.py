"""What this package registers, as data."""

from __future__ import annotations

from collections.abc import Iterable

from gem_core.hookspecs import hookimpl
from gem_core.specs import ToolSpec

GEM_PLUGIN_API = ">=1,<2"


@hookimpl
def gem_tools() -> Iterable[ToolSpec]:
    """One tool; its argument names the servers."""
    yield ToolSpec("mcp:Servers", "gem_mcp.tool:MCPTool", tags=("mcp",), extra="mcp")
