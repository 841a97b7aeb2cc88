"""The plugin of this package. Importing this module must stay cheap: the environment is named, not imported."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from gem_core import Env, EnvSpec, ErrorAction, hookimpl, make
from gem_core.errors import EnvFailure, FailureKind

GEM_PLUGIN_API = ">=1,<2"
"""The plugin API that this plugin needs. A release of gem-core with another API refuses it with a clear message."""

MAZES = {
    "maze:Fork-v0": {"forks": 3, "max_turns": 10},
    "maze:Fork-v0-long": {"forks": 8, "max_turns": 20},
}
"""Arguments by id."""

RETRIES = 2


@hookimpl
def gem_envs() -> Iterable[EnvSpec]:
    """Every maze of this package."""
    for env_id, kwargs in MAZES.items():
        yield EnvSpec(env_id, "gem_example_mazes.fork:Fork", kwargs, ("game", "multi-turn", "tiny"), trusting=())


# The hooks below are called only in a run that enables this plugin.


@hookimpl
def gem_make_env(spec: EnvSpec, kwargs: Mapping[str, Any]) -> Env | None:
    """Play the mazes on the server (`gem-core serve`) that `MAZE_SERVER` names, under their own ids.

    The server sets the arguments, so a maze with other arguments than the id's is built here.
    """
    server = os.environ.get("MAZE_SERVER")
    return make(f"remote:{spec.id}", url=server) if server and kwargs == MAZES.get(spec.id) else None


@hookimpl
def gem_env_error(error: EnvFailure, attempt: int) -> ErrorAction | None:
    """Replay an episode whose process died or hung; leave one whose maze raised to the run's failure policy."""
    by_machine = error.kind in (FailureKind.LOST, FailureKind.TIMEOUT)
    return ErrorAction.RETRY if by_machine and attempt <= RETRIES else None
