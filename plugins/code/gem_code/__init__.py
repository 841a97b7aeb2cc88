"""Programming problems whose answer is a program, graded by tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_core.lazy import lazy_exports

if TYPE_CHECKING:
    from gem_code.grading import verify as verify

__all__ = ["verify"]

__getattr__, __dir__ = lazy_exports(__name__, {"verify": "grading"})
