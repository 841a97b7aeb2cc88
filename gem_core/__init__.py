"""gem-core: write an environment once, train on it in the RL framework you already use.

    import gem_core
    env = gem_core.make("game:GuessTheNumber-v0-easy")
    observation, info = env.reset(seed=0)
    observation, reward, terminated, truncated, info = env.step("\\\\boxed{5}")

Importing this package reads no package metadata and imports no plugin. The names below and the modules of the
package, such as `gem_core.vector`, are loaded on first use.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

from gem_core.upstream import MovedFinder, no_attribute

if TYPE_CHECKING:
    __version__: str
    from gem_core import advantages as advantages
    from gem_core import errors as errors
    from gem_core import plugins as plugins
    from gem_core import registry as registry
    from gem_core import tools as tools
    from gem_core import vector as vector
    from gem_core import wrappers as wrappers
    from gem_core.env import Env as Env
    from gem_core.env import Wrapper as Wrapper
    from gem_core.failures import ErrorAction as ErrorAction
    from gem_core.failures import FailurePolicy as FailurePolicy
    from gem_core.hookspecs import hookimpl as hookimpl
    from gem_core.match import Match as Match
    from gem_core.match import MatchStep as MatchStep
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
    "Match": "match",
    "MatchStep": "match",
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
    "Match",
    "MatchStep",
    "ToolSpec",
    "Wrapper",
    "hookimpl",
    "make",
    "make_tool",
    "make_vec",
    "register",
    "spec",
]


sys.meta_path.insert(0, MovedFinder)  # before the one that would find a part of a moved package at its new place


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("gem-core")
    value = getattr(importlib.import_module(f"gem_core.{_HOME[name]}"), name) if name in _HOME else _module(name)
    globals()[name] = value
    return value


def _module(name: str) -> ModuleType:
    full_name = f"gem_core.{name}"
    try:
        if name.isidentifier() and not name.startswith("_"):
            return importlib.import_module(full_name)
    except ModuleNotFoundError as error:
        if error.name != full_name:
            raise
    raise no_attribute("gem_core", name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
