"""The conformance kit: tests of the contracts of environments, tools and estimators.

    from gem_testing import EnvConformance

    class TestFork(EnvConformance):
        env_id = "maze:Fork-v0"

gives a package one pytest test per promise. `check_env("maze:Fork-v0")` checks all of them in one call, without
pytest. Both report what happened, what was given and what to do. `check_tool` and `check_estimator` do so for tools and
advantage estimators, and `gem-core check ID` for any of the three.

`check_hacking("maze:Fork-v0")` plays some hundred policies that solve nothing, and fails if one of them is paid;
`audit_env` says what the best of them earns.

Installing gem-core also gives pytest the fixture `gem_plugin_manager` (`gem_testing.fixtures`), for tests of
plugins that must not depend on other installed plugins. The names below are loaded on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gem_testing.audit import Bound as Bound
    from gem_testing.audit import HackingAudit as HackingAudit
    from gem_testing.audit import HackingError as HackingError
    from gem_testing.audit import audit_env as audit_env
    from gem_testing.audit import check_hacking as check_hacking
    from gem_testing.conformance import ConformanceError as ConformanceError
    from gem_testing.conformance import EnvConformance as EnvConformance
    from gem_testing.conformance import check_env as check_env
    from gem_testing.conformance import check_estimator as check_estimator
    from gem_testing.conformance import check_tool as check_tool
    from gem_testing.plugins import IsolatedPluginManager as IsolatedPluginManager

_HOME = {
    "Bound": "audit",
    "ConformanceError": "conformance",
    "EnvConformance": "conformance",
    "HackingAudit": "audit",
    "HackingError": "audit",
    "IsolatedPluginManager": "plugins",
    "audit_env": "audit",
    "check_env": "conformance",
    "check_estimator": "conformance",
    "check_hacking": "audit",
    "check_tool": "conformance",
}

__all__ = [
    "Bound",
    "ConformanceError",
    "EnvConformance",
    "HackingAudit",
    "HackingError",
    "IsolatedPluginManager",
    "audit_env",
    "check_env",
    "check_estimator",
    "check_hacking",
    "check_tool",
]


def __getattr__(name: str) -> Any:
    # Lazy, because every pytest run where gem-core is installed imports this package for its fixtures.
    if name not in _HOME:
        raise AttributeError(f"module 'gem_testing' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"gem_testing.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
