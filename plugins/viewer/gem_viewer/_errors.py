"""What can go wrong in the viewer."""

from __future__ import annotations

from gem_core.errors import GemError


class ViewError(GemError):
    """A page cannot be written, or the server cannot be started."""
