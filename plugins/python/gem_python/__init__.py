"""A tool that runs Python programs in a sandbox."""

from gem_python.tool import PythonTool

__all__ = ["PythonTool"]
