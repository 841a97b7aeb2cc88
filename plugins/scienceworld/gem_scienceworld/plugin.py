"""What this package registers: one id per task of ScienceWorld, as data."""

from __future__ import annotations

from collections.abc import Iterable

from gem_core.hookspecs import hookimpl
from gem_core.specs import EnvSpec
from gem_scienceworld._tasks import TASKS

GEM_PLUGIN_API = ">=1,<2"

_TAGS = ("science", "multi-turn")


@hookimpl
def gem_envs() -> Iterable[EnvSpec]:
    """`scienceworld:<task>-v0` for every task; also where ScienceWorld or Java is missing."""
    for task in TASKS:
        entry_point = "gem_scienceworld.env:ScienceWorld"
        yield EnvSpec(
            f"scienceworld:{task}-v0",
            entry_point,
            {"name": task},
            _TAGS,
            "scienceworld",
            ("scienceworld", "py4j"),
            trusting=(),
        )
