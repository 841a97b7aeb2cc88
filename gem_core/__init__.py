"""gem-core: write an environment once, train on it in the RL framework you already use.

    import gem_core
    env = gem_core.make("game:GuessTheNumber-v0-easy")
    observation, info = env.reset(seed=0)
    observation, reward, terminated, truncated, info = env.step("\\\\boxed{5}")

Importing this package reads no package metadata and imports no plugin; the names below are loaded on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str
    from gem_core.env import Env as Env
    from gem_core.env import Wrapper as Wrapper
    from gem_core.failures import ErrorAction as ErrorAction
    from gem_core.failures import FailurePolicy as FailurePolicy
    from gem_core.hookspecs import hookimpl as hookimpl
    from gem_core.registry import make as make
    from gem_core.registry import make_tool as make_tool
    from gem_core.registry import register as register
    from gem_core.registry import spec as spec
    from gem_core.specs import AdapterSpec as AdapterSpec
    from gem_core.specs import AdvantageSpec as AdvantageSpec
    from gem_core.specs import EnvSpec as EnvSpec
    from gem_core.specs import ToolSpec as ToolSpec
    from gem_core.vector import make_vec as make_vec

_HOME = {
    "Env": "env",
    "Wrapper": "env",
    "EnvSpec": "specs",
    "ToolSpec": "specs",
    "AdvantageSpec": "specs",
    "AdapterSpec": "specs",
    "ErrorAction": "failures",
    "FailurePolicy": "failures",
    "hookimpl": "hookspecs",
    "make": "registry",
    "make_tool": "registry",
    "register": "registry",
    "spec": "registry",
    "make_vec": "vector",
}

__all__ = [
    "AdapterSpec",
    "AdvantageSpec",
    "Env",
    "EnvSpec",
    "ErrorAction",
    "FailurePolicy",
    "ToolSpec",
    "Wrapper",
    "hookimpl",
    "make",
    "make_tool",
    "make_vec",
    "register",
    "spec",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("gem-core")
    if name not in _HOME:
        raise AttributeError(f"module 'gem_core' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"gem_core.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
