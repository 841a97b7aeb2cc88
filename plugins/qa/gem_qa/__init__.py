"""Questions that a few words answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_core.lazy import lazy_exports

if TYPE_CHECKING:
    from gem_qa.grading import verify as verify

__all__ = ["verify"]

__getattr__, __dir__ = lazy_exports(__name__, {"verify": "grading"})
