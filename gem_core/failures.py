"""What becomes of an episode whose environment failed."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from gem_core.errors import EnvFailure, PluginError
from gem_core.plugins import manager

if TYPE_CHECKING:
    from gem_core.rollout.records import Episode
    from gem_core.specs import EnvSpec


class ErrorAction(str, Enum):
    """What becomes of an episode whose environment failed."""

    TRUNCATE = "truncate"
    """Keep its turns; the episode ends there. The default."""
    DROP = "drop"
    """Leave it out of the batch, counted as dropped."""
    RAISE = "raise"
    """Stop the run."""


def judge_failure(episode: Episode, spec: EnvSpec | None, attempt: int) -> ErrorAction:
    """Ask the enabled plugins (`gem_env_error`) what becomes of a failed episode.

    Args:
        episode: the episode, with its `error`.
        spec: the environment's spec.
        attempt: failures of that environment slot in a row, this one included.

    Raises:
        EnvFailure: a plugin answered `RAISE`.
        PluginError: a plugin answered something that is no `ErrorAction`.
    """
    error = EnvFailure(f"{episode.env_id} (seed {episode.seed}) failed: {episode.error}")
    answer = manager.decide("gem_env_error", error=error, spec=spec, episode=episode, attempt=attempt)
    try:
        action = ErrorAction.TRUNCATE if answer is None else ErrorAction(answer)
    except ValueError:
        raise PluginError(
            f"gem_env_error gave {answer!r}; it must be one of {[one.value for one in ErrorAction]}"
        ) from error
    if action is ErrorAction.RAISE:
        raise error
    return action
