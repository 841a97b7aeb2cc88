"""What happens to an episode whose environment failed, and when failures stop a run."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from enum import Enum

from gem_core.errors import EnvFailure, FailureKind

DEFAULT_TIMEOUT = 600.0
SHOWN_ERRORS = 3
MAX_ATTEMPTS = 50
"""Without this limit, a plugin that always answers `RETRY` would keep a run busy forever."""


class ErrorAction(str, Enum):
    """What happens to an episode whose environment failed."""

    RETRY = "retry"
    """A fresh environment with the same seed replays the actions, then the failed call is repeated. The rollout sees no
    difference, unless the replay differs from the original; then `FailurePolicy.then` applies."""
    TRUNCATE = "truncate"
    """Keep its turns; the episode ends there."""
    DROP = "drop"
    """Leave it out of the batch, counted as dropped. A vector without a rollout treats it as `TRUNCATE`."""
    RAISE = "raise"
    """Stop the run."""


@dataclass(frozen=True)
class FailurePolicy:
    """What a vector or a rollout does with environments that raise, hang, die or return garbage.

    Raises:
        ValueError: numbers that cannot work, or `then="retry"`.
    """

    timeout: float | None = DEFAULT_TIMEOUT
    """Time limit in seconds of one call: a reset, including construction, or a step. `None` waits forever. The sync
    backend runs in the caller's thread and cannot enforce the limit."""
    retries: int = 0
    """How often a fresh environment may replay an episode; see `ErrorAction.RETRY`."""
    then: ErrorAction = ErrorAction.TRUNCATE
    """What happens after the last retry."""
    max_failure_share: float | None = 0.5
    """A run stops when more than this share of a window failed, for any one environment id; `None`: never."""
    window: int = 40
    """Number of ended episodes of one environment id over which the share is computed. An episode that a retry saved
    did not fail."""

    def __post_init__(self) -> None:
        choices = [one.value for one in ErrorAction if one is not ErrorAction.RETRY]
        if self.then == "retry":
            raise ValueError("then='retry' would never end; set `retries`, and what happens afterwards as `then`")
        if self.then not in choices:
            raise ValueError(f"then must be one of {choices}, not {self.then!r}")
        object.__setattr__(self, "then", ErrorAction(self.then))
        if self.timeout is not None and not (_is_number(self.timeout) and self.timeout > 0):
            raise ValueError(f"timeout must be None or above 0 seconds, not {self.timeout!r}")
        if not (type(self.retries) is type(self.window) is int and self.retries >= 0 and self.window >= 1):
            raise ValueError(
                f"retries={self.retries!r}, window={self.window!r}: whole numbers, the first at least 0, the second 1"
            )
        share = self.max_failure_share
        if share is not None and not (_is_number(share) and 0 <= share < 1):
            raise ValueError(f"max_failure_share must be None or in [0, 1), not {share!r}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class CircuitBreaker:
    """Counts failures per environment id, and reports when there are too many.

    Args:
        policy: sets the share and the window.
    """

    def __init__(self, policy: FailurePolicy) -> None:
        self._policy = policy
        self._recent: dict[str, deque[bool]] = {}
        self._errors: dict[str, list[str]] = {}

    def success(self, env_id: str) -> None:
        """Record an episode that ended without a failure."""
        self._window(env_id).append(False)

    def failure(self, env_id: str, error: str) -> EnvFailure | None:
        """Record a failure. If there are too many, return an error that lists the first ones."""
        window, errors = self._window(env_id), self._errors.setdefault(env_id, [])
        window.append(True)
        if len(errors) < SHOWN_ERRORS and error not in errors:
            errors.append(error)
        share = self._policy.max_failure_share
        if share is None or sum(window) <= share * self._policy.window:
            return None
        first = "\n".join(f"  {number}. {one}" for number, one in enumerate(errors, 1))
        return EnvFailure(
            env_id,
            None,
            FailureKind.TOO_MANY,
            f"{sum(window)} times in its last {len(window)} episodes, and no more than {share:g} of "
            f"{self._policy.window} may fail. Its first errors:\n{first}\n"
            "Fix the environment, or allow a larger share of failed episodes.",
        )

    def _window(self, env_id: str) -> deque[bool]:
        return self._recent.setdefault(env_id, deque(maxlen=self._policy.window))
