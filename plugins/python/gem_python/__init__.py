"""A tool that runs Python programs in a sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_core.lazy import lazy_exports

if TYPE_CHECKING:
    from gem_python.tool import PythonTool as PythonTool

_HOME = {
    "PythonTool": "tool",
}

__all__ = [
    "PythonTool",
]

__getattr__, __dir__ = lazy_exports(__name__, _HOME)
