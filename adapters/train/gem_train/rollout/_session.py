"""The frame around a rollout: its run record, its hooks, and the end of each episode."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from gem_core.episode import Episode, Run, StopReason
from gem_core.errors import EnvFailure, FailureKind
from gem_core.failures import ErrorAction, FailurePolicy
from gem_core.plugins import manager
from gem_core.registry import provenance
from gem_core.vector import decide_failure

MAX_BARREN_EPISODES = 20
"""So many episodes in a row without a single turn, of one environment id, stop the run: nothing would ever come of it.
Failures are not counted here but in the vector's `FailurePolicy`."""
MAX_CUT_OFF_MATCHES = 50
"""So many matches in a row that a limit cut off and that are left out, of one environment id, stop the run, too."""


class RolloutSession:
    """Announces a rollout, decides about its failures, announces its episodes, and ends it once.

    Args:
        env_ids: the environments that take part.
        settings: recorded with the run.
        label: what the rollout is for, such as `train` or `eval`.
    """

    def __init__(self, env_ids: Sequence[str], settings: Mapping[str, Any], label: str = "") -> None:
        self._origin = {env_id: str(provenance(env_id)) for env_id in sorted(set(env_ids))}
        self.run = Run(secrets.token_hex(8), sorted(set(env_ids)), self._origin, dict(settings), label)
        self._empty_streak: Counter[str] = Counter()
        self._cut_off_streak: Counter[str] = Counter()
        self._open = True
        manager.notify("gem_rollout_start", run=self.run)

    def origin(self, env_id: str) -> str:
        """Distribution and version behind an environment."""
        return self._origin[env_id]

    def on_failure(self, policy: FailurePolicy, episode: Episode, failure: EnvFailure) -> ErrorAction:
        """What becomes of an episode whose environment failed: a plugin's word (`gem_env_error`), or the policy's.

        Args:
            policy: the run's.
            episode: its turns so far.
            failure: what happened.
        """
        failed = msgspec.structs.replace(episode, error=failure.cause, stop_reason=StopReason.ENV_ERROR)
        return decide_failure(policy, failure, failed)

    def end(self, episodes: Sequence[Episode], *, cut_off: bool = False) -> None:
        """Announce an ended episode, or those of a match, kept or not.

        Args:
            episodes: the episode, or one for each agent.
            cut_off: they are left out because a limit cut their match off.

        Raises:
            EnvFailure: their environment has given nothing but episodes without a turn, or such matches, for a while.
        """
        for episode in episodes:
            self._end(episode)
        env_id = episodes[0].env_id
        self._cut_off_streak[env_id] = self._cut_off_streak[env_id] + 1 if cut_off else 0
        if self._cut_off_streak[env_id] >= MAX_CUT_OFF_MATCHES:
            raise EnvFailure(
                env_id,
                episodes[0].seed,
                FailureKind.TOO_MANY,
                f"limits cut off {MAX_CUT_OFF_MATCHES} matches in a row, and match_cutoff='drop' left them out, the "
                f"last one with {episodes[0].stop_reason.value}. Allow longer contexts, more turns or more time, or "
                "set match_cutoff='forfeit'.",
            )

    def _end(self, episode: Episode) -> None:
        manager.notify("gem_episode_end", episode=episode)
        if episode.stop_reason is StopReason.ENV_ERROR:
            return
        env_id = episode.env_id
        self._empty_streak[env_id] = 0 if episode.turns else self._empty_streak[env_id] + 1
        if self._empty_streak[env_id] >= MAX_BARREN_EPISODES:
            raise EnvFailure(
                env_id,
                episode.seed,
                FailureKind.NO_TURNS,
                f"{MAX_BARREN_EPISODES} episodes in a row ended before their first turn, the last one with "
                f"{episode.stop_reason.value}. Allow longer contexts if its first observation does not fit, or fix the "
                "environment.",
            )

    def close(self, error: BaseException | None = None) -> None:
        """Announce the end. Safe to call twice."""
        if self._open:
            self._open = False
            manager.notify("gem_rollout_end", run=self.run, error=error)
