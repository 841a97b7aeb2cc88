"""What this package registers: ids, as data."""

from __future__ import annotations

from collections.abc import Iterable

from gem_core.hookspecs import hookimpl
from gem_core.specs import EnvSpec

GEM_PLUGIN_API = ">=1,<2"

_TAGS = ("desk", "multi-turn", "tools", "bundled")


@hookimpl
def gem_envs() -> Iterable[EnvSpec]:
    """The shop's desk: all tasks for training, and the two other splits under ids of their own; tau-bench's desks."""
    for variant, split in (("", "train"), ("-test", "test"), ("-hard", "hard")):
        yield EnvSpec(
            f"desk:Retail-v0{variant}", "gem_desk.env:Retail", {"split": split}, _TAGS, trusting=("customer",)
        )
    yield EnvSpec(
        "desk:TauBench",
        "gem_desk.tau_bench:TauBench",
        tags=("desk", "multi-turn", "tools", "clone"),
        trusting=("home", "customer"),
    )
