"""Failures as a vector judges, shows and logs them."""

from __future__ import annotations

import logging
from typing import NamedTuple

from gem_core.failures import ErrorAction, FailurePolicy, judge_failure
from gem_core.vector.calls import Failure, Transition
from gem_core.vector.tasks import Task

_log = logging.getLogger("gem_core.vector")
_logged: set[tuple[str, str]] = set()
"""Kinds of failure that were logged as a warning in this process."""


class Fault(NamedTuple):
    """A failure, as it is judged."""

    slot: int
    env_id: str
    seed: int
    """What the environment was reset with."""
    episode: int
    """Number of the episode in its slot."""
    task: Task
    error: str
    attempt: int
    """Failures of this episode so far, this one included."""
    repeatable: bool = True
    """False where a retry cannot help: a replay showed something else than the first time."""


def judge_alone(policy: FailurePolicy, fault: Fault) -> ErrorAction:
    """What becomes of a failure in a vector without a rollout, where nobody knows the episode's turns."""
    from gem_core.episode import Episode
    from gem_core.registry import spec

    episode = Episode(
        fault.env_id,
        fault.seed,
        slot=fault.slot,
        number=fault.episode,
        group=fault.task.number,
        turns=[],
        error=fault.error,
    )
    return judge_failure(policy, episode, spec(fault.env_id), fault.attempt, repeatable=fault.repeatable)


def cut_off(error: str) -> Transition:
    """The last transition of an episode whose environment failed."""
    return Transition("", 0.0, False, True, {"error": error})


def log_failure(env_id: str, failure: Failure, action: ErrorAction) -> None:
    """Log the first failure of each kind as a warning, further ones as debug.

    An environment that fails in every episode must not train unnoticed, nor fill the log.
    """
    kind = (env_id, failure.kind or failure.error)
    level = logging.DEBUG if kind in _logged else logging.WARNING
    _logged.add(kind)
    _log.log(
        level,
        "%s failed: %s; next: %s, with a fresh environment. Further failures of this kind are logged as debug.\n%s",
        env_id,
        failure.error,
        action.value,
        failure.traceback,
    )
