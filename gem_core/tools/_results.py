"""What tools give, as what a model may be shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from gem_core.env import RESERVED
from gem_core.errors import ToolError
from gem_core.tool import ToolResult

_MAX_INFO_LENGTH = 1 << 20
"""Bytes of a result's info as JSON."""
_NOT_A_TOOLS = RESERVED | {"prefix", "suffix", "tools", "success", "tool_error"}
"""Keys of info that a tool does not set."""


def checked(output: Any) -> ToolResult:
    """What a tool gave, as a result.

    Raises:
        ToolError: it is none, or too large.
    """
    if not isinstance(output, ToolResult):
        return ToolResult(str(output))
    if not isinstance(output.text, str) or not isinstance(output.info, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ToolError(f"the tool gave {output!r:.200}, whose text is no string or whose info no mapping")
    info = {key: value for key, value in output.info.items() if key not in _NOT_A_TOOLS}
    try:
        size = len(msgspec.json.encode(info))
    except Exception as error:
        raise ToolError(f"the tool's info cannot be JSON: {said(error)}") from error
    if size > _MAX_INFO_LENGTH:
        raise ToolError(f"the tool's info has {size:,} bytes of JSON, and {_MAX_INFO_LENGTH:,} is the most")
    return ToolResult(output.text, bool(output.error), info)


def failed(problem: str) -> ToolResult:
    """A result that says what went wrong."""
    return ToolResult(f"Error: {problem}", error=True)


def said(error: BaseException) -> str:
    """An exception in a line."""
    try:
        return f"{type(error).__name__}: {error}"
    except BaseException:  # its own __str__ raised
        return type(error).__name__


def shown(text: str, most: int) -> str:
    """Text that any tokenizer takes, with a long middle left out."""
    if len(text) > most:
        head, tail = text[: most - most // 2], text[len(text) - most // 2 :]
        text = f"{head}\n[... {len(text) - most:,} characters left out ...]\n{tail}"
    return text.encode("utf-8", "replace").decode("utf-8")
