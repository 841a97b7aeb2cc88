"""Our environments in other libraries. Each name loads the module, and with it the library, on first use.

| name | library | extra |
| --- | --- | --- |
| `to_gymnasium`, `GymnasiumEnv` | Gymnasium | `gym` |
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gem_core.interop.gymnasium_env import GymnasiumEnv as GymnasiumEnv
    from gem_core.interop.gymnasium_env import to_gymnasium as to_gymnasium

_HOME = {"GymnasiumEnv": "gymnasium_env", "to_gymnasium": "gymnasium_env"}

__all__ = ["GymnasiumEnv", "to_gymnasium"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'gem_core.interop' has no attribute {name!r}")
    return getattr(importlib.import_module(f"gem_core.interop.{_HOME[name]}"), name)
