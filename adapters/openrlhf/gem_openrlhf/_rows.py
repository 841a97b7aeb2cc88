"""Episodes in the form in which OpenRLHF's engines send them to its trainer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from gem_core.episode import Episode
from gem_train.results import EpisodeResult
from gem_train.rows import Row, RowKind, rows_of

RESULT = "gem"
"""Key of an `EpisodeRows` in a response of OpenRLHF, and later in `Experience.info`."""


class EpisodeRows(EpisodeResult, frozen=True):
    """The result of an episode, and its training rows. In a match, those of the other agents come with it."""

    rows: Sequence[Row] = ()
    agents: tuple[EpisodeRows, ...] = ()
    """The other agents of a match."""

    @classmethod
    def of(cls, episode: Episode | None, kind: RowKind) -> EpisodeRows:
        """The result and rows of one episode; `None` stands for a dropped episode."""
        return cls() if episode is None else cls(episode.summary(), rows=rows_of(episode, kind))

    @classmethod
    def played(cls, episodes: Sequence[Episode], kind: RowKind) -> EpisodeRows:
        """The result and rows of a task played once; no episodes stand for a dropped one."""
        first, *others = [cls.of(one, kind) for one in episodes or [None]]
        return msgspec.structs.replace(first, agents=tuple(others))

    @property
    def each(self) -> list[EpisodeRows]:
        """The result of every agent."""
        return [self, *self.agents]


def response(prompt: str, label: str, result: EpisodeRows) -> dict[str, Any]:
    """The response that OpenRLHF expects from an agent.

    The response itself has no tokens, so a trainer without support for turns cannot train on it.
    """
    summary = result.summary
    return {
        "prompt": prompt,
        "label": label,
        "images": None,
        "mm_train_inputs": None,
        "reward": summary.total_reward if summary else 0.0,
        "scores": float(summary.success) if summary else 0.0,
        "observation_tokens": [0],
        "action_ranges": [],
        "rollout_log_probs": None,
        "truncated": bool(summary and summary.truncated),
        "extra_logs": {},
        RESULT: result,
    }
