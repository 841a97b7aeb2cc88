"""Checks of a framework's source code, for contract tests."""

from __future__ import annotations

import inspect
import re
from typing import Any


def parameters(function: Any) -> list[str]:
    """The names of the parameters, in order."""
    return [*inspect.signature(function).parameters]


def source(thing: Any) -> str:
    """The source of a function, class or module, or the text itself, without line breaks and indentation."""
    return re.sub(r"\s+", " ", thing if isinstance(thing, str) else inspect.getsource(thing))


def says(thing: Any, *snippets: str) -> None:
    """Assert that the source has all pieces, in this order."""
    text, at = source(thing), 0
    for snippet in snippets:
        found = text.find(snippet, at)
        assert found >= 0, f"{getattr(thing, '__qualname__', 'it')} no longer says, here: {snippet}"
        at = found + len(snippet)
