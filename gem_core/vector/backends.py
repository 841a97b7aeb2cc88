"""Parts of a vector backend, for a plugin that adds one (`gem_backends`).

A backend is a callable `build(homes, builders, plan, workers, **settings)` that returns a `VectorEnv`:

| argument | type | meaning |
| --- | --- | --- |
| `homes` | list of `SlotConfig` | the environment of each slot |
| `builders` | dict of `Callable[[], Env]` | builds an environment, by its id |
| `plan` | `TaskPlan` | which tasks the slots play |
| `workers` | int or `None` | as the user of `make_vec` gave it |
| `settings` | | keyword arguments of `VectorEnv` |

A subclass of `PooledVectorEnv` keeps its environments in workers that may be lost. It overrides `_start_worker`,
`_poll` and other methods with an underscore, and gives outcomes to `_arrive` and losses to `_lose`. `gem_ray` does so.
"""

from __future__ import annotations

from gem_core.vector._calls import CallOutcome, EnvCall, FailedCall, Replay, Transition
from gem_core.vector._pool import PooledVectorEnv, Worker
from gem_core.vector._process import LOOK_SECONDS, START_SECONDS, make_setup, pickled_builders
from gem_core.vector._wire import Garbage, listed, unpacked
from gem_core.vector._worker import Setup, SlotConfig

__all__ = [
    "LOOK_SECONDS",
    "START_SECONDS",
    "CallOutcome",
    "EnvCall",
    "FailedCall",
    "Garbage",
    "PooledVectorEnv",
    "Replay",
    "Setup",
    "SlotConfig",
    "Transition",
    "Worker",
    "listed",
    "make_setup",
    "pickled_builders",
    "unpacked",
]
