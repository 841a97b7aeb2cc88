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

from typing import TYPE_CHECKING

from gem_core.lazy import lazy_exports

if TYPE_CHECKING:
    from gem_testing._audit import KINDS as KINDS
    from gem_testing._audit import ROUNDS as ROUNDS
    from gem_testing._audit import Bound as Bound
    from gem_testing._audit import HackingAudit as HackingAudit
    from gem_testing._audit import HackingError as HackingError
    from gem_testing._audit import Kind as Kind
    from gem_testing._audit import audit_env as audit_env
    from gem_testing._audit import check_hacking as check_hacking
    from gem_testing._conformance import ConformanceError as ConformanceError
    from gem_testing._conformance import EnvConformance as EnvConformance
    from gem_testing._conformance import check_env as check_env
    from gem_testing._conformance import check_estimator as check_estimator
    from gem_testing._conformance import check_tool as check_tool
    from gem_testing._plugins import IsolatedPluginManager as IsolatedPluginManager

_HOME = {
    "Bound": "_audit",
    "ConformanceError": "_conformance",
    "EnvConformance": "_conformance",
    "HackingAudit": "_audit",
    "HackingError": "_audit",
    "IsolatedPluginManager": "_plugins",
    "KINDS": "_audit",
    "Kind": "_audit",
    "ROUNDS": "_audit",
    "audit_env": "_audit",
    "check_env": "_conformance",
    "check_estimator": "_conformance",
    "check_hacking": "_audit",
    "check_tool": "_conformance",
}

__all__ = [
    "KINDS",
    "ROUNDS",
    "Bound",
    "ConformanceError",
    "EnvConformance",
    "HackingAudit",
    "HackingError",
    "IsolatedPluginManager",
    "Kind",
    "audit_env",
    "check_env",
    "check_estimator",
    "check_hacking",
    "check_tool",
]

__getattr__, __dir__ = lazy_exports(__name__, _HOME)
