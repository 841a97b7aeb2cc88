"""What this package registers: one id per data set of reasoning-gym, as data."""

from __future__ import annotations

from collections.abc import Iterable

from gem_core.hookspecs import hookimpl
from gem_core.specs import EnvSpec
from gem_reasoning_gym.names import names

GEM_PLUGIN_API = ">=1,<2"

_ENTRY_POINT = "gem_reasoning_gym.env:ReasoningGym"


@hookimpl
def gem_envs() -> Iterable[EnvSpec]:
    """`rg:<name>` for every data set; those of a known release where reasoning-gym is not installed."""
    for name, category in sorted(names().items()):
        yield EnvSpec(
            f"rg:{name}", _ENTRY_POINT, {"dataset": name}, ("reasoning", "single-turn", category), "reasoning-gym"
        )
