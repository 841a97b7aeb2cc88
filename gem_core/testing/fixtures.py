"""The pytest plugin that comes with gem-core.

Every pytest run of whoever installs gem-core imports this module, so it imports nothing but pytest, which is there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from gem_core.testing.plugins import IsolatedPluginManager


@pytest.fixture
def gem_plugin_manager() -> IsolatedPluginManager:
    """A plugin manager of its own that sees only what the test adds; see `IsolatedPluginManager`.

    Example:
        def test_offers(gem_plugin_manager):
            gem_plugin_manager.add_plugin("maze", my_mazes.plugin)
            assert gem_plugin_manager.find("gem_envs", "maze:Fork-v0") is not None
    """
    from gem_core.testing.plugins import IsolatedPluginManager

    return IsolatedPluginManager()
