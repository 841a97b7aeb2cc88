"""The frame around a rollout: its run record, its hooks, and the end of each episode."""

from __future__ import annotations

import dataclasses
import secrets
from collections import Counter
from collections.abc import Sequence

from gem_core.errors import EnvFailure
from gem_core.failures import ErrorAction, judge_failure
from gem_core.plugins import manager
from gem_core.registry import provenance, spec
from gem_core.rollout.records import Episode, Run, StopReason
from gem_core.rollout.settings import RolloutSettings

MAX_BARREN_EPISODES = 5
"""So many episodes in a row without a single turn, in one slot, stop the run: nothing would ever come of it."""
MAX_LOST_EPISODES = 20
"""So many in a row without a turn or dropped, in one slot, stop it too. More, because failures may come by chance."""


class Session:
    """Announces a rollout, judges and announces its episodes, and ends it once.

    Args:
        env_ids: the environments that take part.
        settings: recorded with the run.
    """

    def __init__(self, env_ids: Sequence[str], settings: RolloutSettings) -> None:
        self._origin = {env_id: str(provenance(env_id)) for env_id in sorted(set(env_ids))}
        self.run = Run(secrets.token_hex(8), sorted(set(env_ids)), self._origin, dataclasses.asdict(settings))
        self._failures: Counter[int] = Counter()
        self._barren: Counter[int] = Counter()
        self._lost: Counter[int] = Counter()
        self._open = True
        manager.notify("gem_rollout_start", run=self.run)

    def origin(self, env_id: str) -> str:
        """Distribution and version behind an environment."""
        return self._origin[env_id]

    def keep(self, episode: Episode) -> bool:
        """Take note of an ended episode; false if it is to be left out of the batch.

        Raises:
            EnvFailure: a plugin wants the run stopped, or the slot has given nothing but episodes that are empty or
                dropped for a while.
        """
        manager.notify("gem_episode_end", episode=episode)
        slot, barren, failed = episode.slot, not episode.turns, episode.stop_reason is StopReason.ENV_ERROR
        self._failures[slot] = self._failures[slot] + 1 if failed else 0
        self._barren[slot] = self._barren[slot] + 1 if barren else 0
        if self._barren[slot] >= MAX_BARREN_EPISODES:
            raise _fruitless(episode, f"{MAX_BARREN_EPISODES} episodes in a row ended before their first turn")
        action = judge_failure(episode, spec(episode.env_id), self._failures[slot]) if failed else ErrorAction.TRUNCATE
        dropped = action is ErrorAction.DROP
        self._lost[slot] = self._lost[slot] + 1 if barren or dropped else 0
        if self._lost[slot] >= MAX_LOST_EPISODES:
            raise _fruitless(episode, f"{MAX_LOST_EPISODES} episodes in a row were empty or dropped")
        return not dropped

    def close(self, error: BaseException | None = None) -> None:
        """Announce the end. Safe to call twice."""
        if self._open:
            self._open = False
            manager.notify("gem_rollout_end", run=self.run, error=error)


def _fruitless(episode: Episode, what: str) -> EnvFailure:
    return EnvFailure(
        f"{episode.env_id}: {what}; the last one ended with {episode.stop_reason.value} "
        f"({episode.error or 'no error'}, seed {episode.seed}). Repair the environment, or raise max_context_tokens if "
        "its first observation is too long."
    )
