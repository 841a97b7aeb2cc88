"""The specs of the core itself, declared through the same hooks as those of plugins."""

from __future__ import annotations

import os
from collections.abc import Iterable

from gem_core.hookspecs import hookimpl
from gem_core.specs import AdvantageSpec, Isolation


@hookimpl
def gem_advantages() -> Iterable[AdvantageSpec]:
    """The estimators of `gem_core.advantages`."""
    yield AdvantageSpec("reinforce", "gem_core.advantages:reinforce")
    yield AdvantageSpec("rebn", "gem_core.advantages:rebn")
    yield AdvantageSpec("rebn_loo", "gem_core.advantages:rebn_loo")
    yield AdvantageSpec("grpo", "gem_core.advantages:grpo", needs_groups=True)
    yield AdvantageSpec("drgrpo", "gem_core.advantages:drgrpo", needs_groups=True)
    yield AdvantageSpec("rloo", "gem_core.advantages:rloo", needs_groups=True)
    yield AdvantageSpec("turn_grpo", "gem_core.advantages:turn_grpo", needs_groups=True)
    yield AdvantageSpec("gigpo", "gem_core.advantages:gigpo", needs_groups=True, needs_states=True)
    yield AdvantageSpec("rae", "gem_core.advantages:rae")
    yield AdvantageSpec("gae", "gem_core.advantages:gae", needs_values=True)


@hookimpl
def gem_doctor(isolations: list[Isolation]) -> None:
    """The isolation of the core itself."""
    linux = hasattr(os, "pidfd_open")
    isolations += [
        Isolation(
            "environments",
            False,
            'Environments run with the rights of your user. With the backends "process" and "ray", one that crashes, '
            "hangs or runs out of memory costs only its own episodes",
        ),
        Isolation(
            "processes that a run leaves behind",
            linux,
            "A small process ends them within 15 seconds of the run, even after SIGKILL" if linux else "Needs Linux",
        ),
    ]
