"""Gymnasium's environments as `gym:<Gymnasium id>`, played in text: https://gymnasium.farama.org."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gem_gym.exported import GymnasiumEnv as GymnasiumEnv
    from gem_gym.exported import to_gymnasium as to_gymnasium

__all__ = ["GymnasiumEnv", "to_gymnasium"]


def __getattr__(name: str) -> Any:
    """Load the name on first use, and with it the library."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from gem_gym import exported

    return getattr(exported, name)
