"""Oat: multi-turn environments and per-turn advantages in Oat's own program of actors and learners.

    from oat.args import get_default_args
    from gem_oat import GemOatArgs, run
    run(get_default_args(GemOatArgs))  # --env game:GuessTheNumber-v0-easy --pretrain Qwen/Qwen3-1.7B-Base ...

`GemOatArgs` are Oat's own arguments with the settings of a run of gem-core.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_oat.plugin import OAT
from gem_train import lazy_names

if TYPE_CHECKING:
    from gem_oat._actor import GemActor as GemActor
    from gem_oat._args import GemOatArgs as GemOatArgs
    from gem_oat._learner import GemLearner as GemLearner
    from gem_oat._program import run as run

__all__ = ["GemActor", "GemLearner", "GemOatArgs", "run"]

__getattr__ = lazy_names(
    __name__, OAT, {"GemActor": "_actor", "GemLearner": "_learner", "GemOatArgs": "_args", "run": "_program"}
)
