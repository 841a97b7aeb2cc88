"""What this package registers: one id per data set of reasoning-gym, as data."""

from __future__ import annotations

from collections.abc import Iterable

from gem_core.hookspecs import hookimpl
from gem_core.specs import EnvSpec, Isolation
from gem_reasoning_gym._names import names

GEM_PLUGIN_API = ">=1,<2"

_ENTRY_POINT = "gem_reasoning_gym.env:ReasoningGym"


@hookimpl
def gem_envs() -> Iterable[EnvSpec]:
    """`rg:<name>` for every data set; those of a known release where reasoning-gym is not installed.

    `rg:<name>-v0` shows the bare question and pays what reasoning-gym does, as upstream.
    """
    for name, category in sorted(names().items()):
        tags = ("reasoning", "single-turn", category)
        yield EnvSpec(f"rg:{name}", _ENTRY_POINT, {"dataset": name}, tags, "reasoning-gym")
        published = {"dataset": name, "published": True, "instruction": False}
        yield EnvSpec(f"rg:{name}-v0", _ENTRY_POINT, published, (*tags, "bare"), "reasoning-gym")


@hookimpl
def gem_doctor(isolations: list[Isolation]) -> None:
    """What confines answers here."""
    from gem_grading import isolation

    isolations.append(isolation())
