"""The error of this package."""

from __future__ import annotations

from gem_core.errors import EnvError


class TaskRefused(EnvError):
    """A folder of a task that cannot be run here, or is none; the message names it and says why."""
