"""The error of this package."""

from __future__ import annotations

from gem_core.errors import GemError


class SandboxError(GemError):
    """No sandbox can be had as asked: no safe backend here, a module that cannot be preloaded, limits that are none."""
