"""The plugin of this package. Importing this module must stay cheap: the environment is named, not imported."""

from __future__ import annotations

from collections.abc import Iterable

from gem_core import EnvSpec, hookimpl

GEM_PLUGIN_API = ">=1,<2"
"""The plugin API that this plugin needs. A release of gem-core with another API refuses it with a clear message."""


@hookimpl
def gem_envs() -> Iterable[EnvSpec]:
    """Every maze of this package."""
    tags = ("game", "multi-turn", "tiny")
    yield EnvSpec("maze:Fork-v0", "gem_example_mazes.fork:Fork", {"forks": 3, "max_turns": 10}, tags)
    yield EnvSpec("maze:Fork-v0-long", "gem_example_mazes.fork:Fork", {"forks": 8, "max_turns": 20}, tags)
