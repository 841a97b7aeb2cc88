"""Search over a corpus of passages: the tool and its server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_core.lazy import lazy_exports

if TYPE_CHECKING:
    from gem_search._local import local_server as local_server
    from gem_search.tool import SearchTool as SearchTool

_HOME = {
    "SearchTool": "tool",
    "local_server": "_local",
}

__all__ = [
    "SearchTool",
    "local_server",
]

__getattr__, __dir__ = lazy_exports(__name__, _HOME)
