"""Failures as a vector decides, shows and logs them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from gem_core.errors import EnvFailure, FailureKind, PluginError
from gem_core.failures import MAX_ATTEMPTS, ErrorAction, FailurePolicy
from gem_core.plugins import manager
from gem_core.registry import spec
from gem_core.vector.calls import Failure, Transition
from gem_core.vector.tasks import Task

if TYPE_CHECKING:
    from gem_core.episode import Episode

_log = logging.getLogger("gem_core.vector")
_logged: dict[str, set[str]] = {}
"""Kinds of failure that were logged as a warning in this process, per environment id."""
_MOST_KINDS = 50
"""Of one environment id. An environment that gives each failure a name of its own must not fill the log either."""


class Fault(NamedTuple):
    """A failure, as the vector asks what is to become of it."""

    slot: int
    env_id: str
    seed: int
    """The seed that the environment was reset with."""
    episode: int
    """Number of the episode in its slot."""
    task: Task
    kind: FailureKind
    error: str
    attempt: int
    """Failures of this episode so far, this one included."""

    @property
    def failure(self) -> EnvFailure:
        """The same as an error."""
        return EnvFailure(self.env_id, self.seed, self.kind, self.error)


def decide_failure(policy: FailurePolicy, fault: Fault, episode: Episode) -> ErrorAction:
    """What becomes of a failed episode: what an enabled plugin says (`gem_env_error`), otherwise the policy.

    A retry that cannot help, because a replay has shown something else, is replaced by the policy's `then`.

    Args:
        policy: the run's.
        fault: the failure.
        episode: what is known of the episode, with its `error`.

    Raises:
        PluginError: a plugin answered something that is no `ErrorAction`.
    """
    answer = manager.decide(
        "gem_env_error", error=fault.failure, spec=spec(fault.env_id), episode=episode, attempt=fault.attempt
    )
    if answer is None:
        answer = ErrorAction.RETRY if fault.attempt <= policy.retries else policy.then
    try:
        action = ErrorAction(answer)
    except ValueError:
        raise PluginError(
            f"gem_env_error gave {answer!r}; it must be one of {[one.value for one in ErrorAction]}"
        ) from fault.failure
    if action is ErrorAction.RETRY and (fault.kind is FailureKind.DIVERGED or fault.attempt >= MAX_ATTEMPTS):
        return policy.then
    return action


def decide_alone(policy: FailurePolicy, fault: Fault) -> ErrorAction:
    """What becomes of a failure in a vector without a rollout, where nobody knows the episode's turns."""
    from gem_core.episode import Episode  # msgspec is not needed before something fails

    episode = Episode(
        fault.env_id,
        fault.seed,
        slot=fault.slot,
        number=fault.episode,
        task_id=fault.task.task_id,
        turns=[],
        error=fault.error,
    )
    return decide_failure(policy, fault, episode)


def cut_off(error: str) -> Transition:
    """The last transition of an episode whose environment failed."""
    return Transition("", 0.0, False, True, {"error": error})


def log_failure(env_id: str, failure: Failure, action: ErrorAction) -> None:
    """Log the first failure of each kind as a warning, further ones as debug.

    An environment that fails in every episode must not train unnoticed, nor fill the log.
    """
    kind, logged = failure.place or failure.error, _logged.setdefault(env_id, set())
    known = kind in logged or len(logged) >= _MOST_KINDS
    if not known:
        logged.add(kind)
    _log.log(
        logging.DEBUG if known else logging.WARNING,
        "%s failed: %s; next: %s, with a fresh environment. Further failures of this kind are logged as debug.\n%s",
        env_id,
        failure.error,
        action.value,
        failure.traceback,
    )
