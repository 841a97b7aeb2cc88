"""Episodes as what travels from OpenRLHF's engines to its trainer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gem_core.episode import Episode
from gem_core.training.results import EpisodeResult
from gem_core.training.rows import Row, RowKind, rows_of

RESULT = "gem"
"""Key of an `EpisodeRows` in a response of OpenRLHF's, and later in `Experience.info`."""


class EpisodeRows(EpisodeResult, frozen=True):
    """What became of an episode, and its rows to train on."""

    rows: Sequence[Row] = ()

    @classmethod
    def of(cls, episode: Episode | None, kind: RowKind) -> EpisodeRows:
        """Those of an episode; `None` is one that was dropped."""
        return cls() if episode is None else cls(episode.summary(), rows=rows_of(episode, kind))


def response(prompt: str, label: str, result: EpisodeRows) -> dict[str, Any]:
    """What OpenRLHF expects of an agent.

    It has no tokens of its own, so a trainer that does not know turns cannot train on it.
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
