"""Episodes as what travels from OpenRLHF's engines to its trainer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from gem_core.rollout import Episode, EpisodeSummary
from gem_core.rollout import Sequence as TokenSequence
from gem_core.training.metrics import rollout_metrics
from gem_core.training.rows import TurnSpan, turn_spans, view_sequences
from gem_core.training.settings import RowKind

PLAYED = "gem"
"""Key in a response of OpenRLHF's, and later in `Experience.info`."""


class Row(msgspec.Struct, frozen=True):
    """A sequence to train on."""

    ids: list[int]
    """Token ids of the first prompt and all that follows."""
    logprobs: list[float] | None
    """Of each id, 0 where it was not sampled; `None` where the engine gave none."""
    spans: list[TurnSpan]
    """Its turns."""


class Played(msgspec.Struct, frozen=True):
    """What became of a task."""

    episode: EpisodeSummary | None = None
    """`None` where it is to count for nothing."""
    rows: list[Row] = []
    rewards: list[float] = []
    """Of each turn."""
    truncated: list[bool] = []
    """Whether the token limit cut off the response, of each turn."""


def metrics(batch: Sequence[Played]) -> dict[str, float]:
    """Those of a batch; see `rollout_metrics`."""
    episodes = [one.episode for one in batch if one.episode is not None]
    return rollout_metrics(episodes, len(batch) - len(episodes))


def played(episode: Episode | None, row: RowKind) -> Played:
    """An episode as rows.

    Args:
        episode: what was played, `None` where it was dropped.
        row: `episode` for as few rows as exact prefixes allow, as a rule one; `turn` for one per turn.
    """
    if episode is None:
        return Played()
    return Played(
        episode.summary(),
        [_row(one) for one in view_sequences(episode.turns, row)],
        [turn.reward for turn in episode.turns],
        [turn.truncated for turn in episode.turns],
    )


def response(prompt: str, label: str, result: Played) -> dict[str, Any]:
    """What OpenRLHF expects of an agent.

    It has no tokens of its own, so that a trainer that knows nothing of turns cannot train on it.
    """
    episode = result.episode
    return {
        "prompt": prompt,
        "label": label,
        "images": None,
        "mm_train_inputs": None,
        "reward": episode.total_reward if episode else 0.0,
        "scores": float(episode.success) if episode else 0.0,
        "observation_tokens": [0],
        "action_ranges": [],
        "rollout_log_probs": None,
        "truncated": any(result.truncated),
        "extra_logs": {},
        PLAYED: result,
    }


def _row(sequence: TokenSequence) -> Row:
    prompt = len(sequence.prompt_ids)
    logprobs = None if sequence.logprobs is None else [0.0] * prompt + sequence.logprobs
    return Row(sequence.prompt_ids + sequence.completion_ids, logprobs, [*turn_spans(sequence.turn_of, prompt)])
