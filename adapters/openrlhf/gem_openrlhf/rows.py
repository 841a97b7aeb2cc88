"""Episodes as what travels from OpenRLHF's engines to its trainer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Literal, NamedTuple

import msgspec

from gem_core.rollout import NOT_SAMPLED, Episode, EpisodeSummary, Turn, merge_turns
from gem_core.rollout import Sequence as TokenSequence

PLAYED = "gem"
"""Key in a response of OpenRLHF's, and later in `Experience.info`."""


class TurnSpan(NamedTuple):
    """Where a turn's response stands among the tokens of its row: from `start` to before `end`."""

    turn: int
    start: int
    end: int


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


def played(episode: Episode | None, view: Literal["episode", "turn"]) -> Played:
    """An episode as rows.

    Args:
        episode: what was played, `None` where it was dropped.
        view: `episode` for as few rows as exact prefixes allow, as a rule one; `turn` for one per turn.
    """
    if episode is None:
        return Played()
    return Played(
        episode.summary(),
        [_row(one) for one in _sequences(episode.turns, view)],
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


def _sequences(turns: Sequence[Turn], view: Literal["episode", "turn"]) -> list[TokenSequence]:
    if view == "episode":
        return merge_turns(turns)
    return [
        TokenSequence(turn.prompt_ids, turn.response_ids, [index] * len(turn.response_ids), turn.logprobs)
        for index, turn in enumerate(turns)
    ]


def _row(sequence: TokenSequence) -> Row:
    prompt = len(sequence.prompt_ids)
    logprobs = None if sequence.logprobs is None else [0.0] * prompt + sequence.logprobs
    return Row(sequence.prompt_ids + sequence.completion_ids, logprobs, [*_spans(sequence.turn_of, prompt)])


def _spans(turn_of: Sequence[int], start: int) -> Iterator[TurnSpan]:
    for turn, tokens in groupby(turn_of):
        end = start + len([*tokens])
        if turn != NOT_SAMPLED:
            yield TurnSpan(turn, start, end)
        start = end
