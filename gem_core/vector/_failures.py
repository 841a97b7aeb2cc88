"""Failures as a vector decides, shows and logs them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from gem_core.errors import EnvFailure, FailureKind, PluginError
from gem_core.failures import MAX_ATTEMPTS, ErrorAction, FailurePolicy
from gem_core.plugins import manager
from gem_core.registry import spec
from gem_core.vector._calls import FailedCall, Transition

if TYPE_CHECKING:
    from gem_core.episode import Episode

_log = logging.getLogger("gem_core.vector")
_logged: dict[str, set[str]] = {}
"""Kinds of failure that were logged as a warning in this process, per environment id."""
_MAX_KINDS = 50
"""Of one environment id. An environment that gives each failure a name of its own must not fill the log either."""


def decide_failure(policy: FailurePolicy, failure: EnvFailure, episode: Episode) -> ErrorAction:
    """What becomes of a failed episode: what an enabled plugin says (`gem_env_error`), otherwise the policy.

    A retry that cannot help, because a replay has shown something else, is replaced by the policy's `then`.

    Args:
        policy: the run's.
        failure: what happened.
        episode: what is known of the episode, with its `error`.

    Raises:
        PluginError: a plugin answered something that is no `ErrorAction`.
    """
    answer = manager.decide(
        "gem_env_error", error=failure, spec=spec(failure.env_id), episode=episode, attempt=failure.attempt
    )
    if answer is None:
        answer = ErrorAction.RETRY if failure.attempt <= policy.retries else policy.then
    try:
        action = ErrorAction(answer)
    except ValueError:
        raise PluginError(
            f"gem_env_error gave {answer!r}; it must be one of {[one.value for one in ErrorAction]}"
        ) from failure
    if action is ErrorAction.RETRY and (failure.kind is FailureKind.DIVERGED or failure.attempt >= MAX_ATTEMPTS):
        return policy.then
    return action


def decide_alone(policy: FailurePolicy, failure: EnvFailure) -> ErrorAction:
    """What becomes of a failure in a vector without a rollout, where nobody knows the episode's turns."""
    from gem_core.episode import Episode  # msgspec is not needed before something fails

    episode = Episode(
        failure.env_id,
        failure.seed or 0,
        slot=failure.slot,
        number=failure.episode,
        task_id=failure.task_id,
        turns=[],
        error=failure.cause,
    )
    return decide_failure(policy, failure, episode)


def cut_off(error: str, kind: FailureKind | None = None) -> Transition:
    """The last transition of an episode whose environment failed."""
    late = {"timed_out": True} if kind is FailureKind.TIMEOUT else {}
    return Transition("", 0.0, False, True, {"error": error, **late})


def log_failure(env_id: str, failure: FailedCall, action: ErrorAction) -> None:
    """Log the first failure of each kind as a warning, further ones as debug.

    An environment that fails in every episode must not train unnoticed, nor fill the log.
    """
    kind, logged = failure.place or failure.error, _logged.setdefault(env_id, set())
    known = kind in logged or len(logged) >= _MAX_KINDS
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
