"""The conformance kit: tests of the contract of `gem_core.Env`.

    from gem_core.testing import EnvConformance

    class TestFork(EnvConformance):
        env_id = "maze:Fork-v0"

gives a package one pytest test per promise. `check_env("maze:Fork-v0")` checks all of them in one call, without
pytest. Both report what happened, what was given and what to do.

Installing gem-core also gives pytest the fixture `gem_plugin_manager` (`gem_core.testing.fixtures`), for tests of
plugins that must not depend on other installed plugins. The names below are loaded on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gem_core.testing.conformance import ConformanceError as ConformanceError
    from gem_core.testing.conformance import EnvConformance as EnvConformance
    from gem_core.testing.conformance import check_env as check_env
    from gem_core.testing.plugins import IsolatedPluginManager as IsolatedPluginManager

_HOME = {
    "ConformanceError": "conformance",
    "EnvConformance": "conformance",
    "IsolatedPluginManager": "plugins",
    "check_env": "conformance",
}

__all__ = ["ConformanceError", "EnvConformance", "IsolatedPluginManager", "check_env"]


def __getattr__(name: str) -> Any:
    # Lazy, because every pytest run where gem-core is installed imports this package for its fixtures.
    if name not in _HOME:
        raise AttributeError(f"module 'gem_core.testing' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"gem_core.testing.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
