"""What this package registers: the search tool, and the command that starts a server for it."""

from __future__ import annotations

from collections.abc import Iterable

from gem_core.hookspecs import hookimpl
from gem_core.specs import ToolSpec

GEM_PLUGIN_API = ">=1,<2"


@hookimpl
def gem_tools() -> Iterable[ToolSpec]:
    """The tool that upstream's recipes use for questions."""
    yield ToolSpec("search:Passages", "gem_search.tool:SearchTool", tags=("search", "qa"), extra="search")
