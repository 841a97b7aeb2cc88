"""Gymnasium's environments as `gym:<Gymnasium id>`, played in text: https://gymnasium.farama.org."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_core.lazy import lazy_exports

if TYPE_CHECKING:
    from gem_gym.exported import GymnasiumEnv as GymnasiumEnv
    from gem_gym.exported import to_gymnasium as to_gymnasium

_HOME = {
    "GymnasiumEnv": "exported",
    "to_gymnasium": "exported",
}

__all__ = [
    "GymnasiumEnv",
    "to_gymnasium",
]

__getattr__, __dir__ = lazy_exports(__name__, _HOME)
