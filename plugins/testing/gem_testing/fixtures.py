"""The pytest plugin that comes with gem-core.

Every pytest run where gem-core is installed imports this module, so it imports only pytest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from gem_testing._plugins import IsolatedPluginManager


@pytest.fixture
def gem_plugin_manager() -> IsolatedPluginManager:
    """A plugin manager that sees only the plugins that the test adds; see `IsolatedPluginManager`.

    Example:
        def test_offers(gem_plugin_manager):
            gem_plugin_manager.add_plugin("maze", my_mazes.plugin)
            assert gem_plugin_manager.find("gem_envs", "maze:Fork-v0") is not None
    """
    from gem_testing._plugins import IsolatedPluginManager

    return IsolatedPluginManager()
