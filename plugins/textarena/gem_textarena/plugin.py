"""What this package registers: one id per one-player game of TextArena, as data."""

from __future__ import annotations

from collections.abc import Iterable

from gem_core.hookspecs import hookimpl
from gem_core.specs import EnvSpec
from gem_textarena.names import names

GEM_PLUGIN_API = ">=1,<2"


@hookimpl
def gem_envs() -> Iterable[EnvSpec]:
    """`textarena:<id>` for every one-player game that starts without a network."""
    for name in names():
        tags = ("game", "multi-turn")
        yield EnvSpec(f"textarena:{name}", "gem_textarena.env:TextArena", {"name": name}, tags, "textarena")
