"""Our environments in other libraries. Each name loads the module, and with it the library, on first use.

| name | library | extra |
| --- | --- | --- |
| `to_gymnasium`, `GymnasiumEnv` | Gymnasium | `gym` |
| `to_verifiers`, `VerifiersEnv` | verifiers | `verifiers` |
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gem_core.interop.gymnasium_env import GymnasiumEnv as GymnasiumEnv
    from gem_core.interop.gymnasium_env import to_gymnasium as to_gymnasium
    from gem_core.interop.verifiers_env import VerifiersEnv as VerifiersEnv
    from gem_core.interop.verifiers_env import to_verifiers as to_verifiers

_HOME = {
    "GymnasiumEnv": "gymnasium_env",
    "VerifiersEnv": "verifiers_env",
    "to_gymnasium": "gymnasium_env",
    "to_verifiers": "verifiers_env",
}

__all__ = ["GymnasiumEnv", "VerifiersEnv", "to_gymnasium", "to_verifiers"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'gem_core.interop' has no attribute {name!r}")
    return getattr(importlib.import_module(f"gem_core.interop.{_HOME[name]}"), name)
