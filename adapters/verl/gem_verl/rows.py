"""Episodes as the rows that verl trains on, and what rows carry through verl beside their tokens."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import torch
from verl.experimental.agent_loop.agent_loop import AgentLoopMetrics, AgentLoopOutput

from gem_core.rollout import Episode, EpisodeSummary, Turn
from gem_core.training.rows import TurnSpan, turn_spans, view_sequences
from gem_core.training.settings import RowKind

NOTE = "gem"
"""Key of the note in `reward_extra_info`, which verl hands on in training and validation alike."""

TURNS = "turns"
"""Key of a row's turns in `extra_fields`: what verl does not copy from the last row of an episode to the others."""


class Note(msgspec.Struct, frozen=True):
    """What became of an episode; the same on all its rows."""

    episode: EpisodeSummary | None = None
    """`None` where it never came to be."""
    dropped: bool = False
    """It counts for nothing."""
    fatal: str | None = None
    """What is to stop the run."""

    def encode(self) -> str:
        """As ASCII text, which verl takes for no metric of its own; errors may hold what is no Unicode."""
        return json.dumps(msgspec.to_builtins(self))

    @classmethod
    def decode(cls, text: str) -> Note:
        """The note in a text."""
        return msgspec.convert(json.loads(text), cls)


class TurnOutput(AgentLoopOutput):
    """A row in which each turn has a reward of its own, on its last token."""

    token_rewards: list[float]
    """One per response token."""

    def as_dict(self) -> dict[str, Any]:
        """verl's fields, with the rewards of the turns where verl has one for the row."""
        fields = super().as_dict()
        fields["rm_scores"] = torch.tensor(fields.pop("token_rewards"), dtype=torch.float32)
        return fields


def episode_rows(
    episode: Episode, kind: RowKind, fields: Mapping[str, Any], metrics: AgentLoopMetrics
) -> list[AgentLoopOutput]:
    """The rows of an episode with turns.

    Args:
        episode: what was played.
        kind: `episode` for as few rows as exact prefixes allow, as a rule one; `turn` for one per turn.
        fields: what verl wants to know of each row, besides.
        metrics: verl's own.
    """
    summary = episode.summary()
    info = {"acc": float(summary.success), "return": summary.total_reward, NOTE: Note(summary).encode()}
    return [
        TurnOutput(
            prompt_ids=row.prompt_ids,
            response_ids=row.completion_ids,
            response_mask=row.mask,
            response_logprobs=row.logprobs,
            token_rewards=_token_rewards(spans, episode.turns, len(row.completion_ids)),
            reward_score=summary.total_reward,
            num_turns=len(episode.turns),
            metrics=metrics,
            extra_fields={**fields, TURNS: spans, "reward_extra_info": info},
        )
        for row in view_sequences(episode.turns, kind)
        for spans in (list(turn_spans(row.turn_of)),)
    ]


def report_row(note: Note, fields: Mapping[str, Any]) -> AgentLoopOutput:
    """A row that trains nothing and tells what became of an episode without turns.

    verl would otherwise hear nothing of it, or stop for want of rows.
    """
    # Not a number for what is to stop the run: verl's filter of groups without a signal must not take it out.
    nothing = math.nan if note.fatal else 0.0
    success, total = (note.episode.success, note.episode.total_reward) if note.episode else (nothing, nothing)
    info: dict[str, Any] = {"acc": float(success), "return": total, NOTE: note.encode()}
    return AgentLoopOutput(
        prompt_ids=[0],  # any token will do, and every vocabulary has this one
        response_ids=[0],
        response_mask=[0],
        response_logprobs=[0.0],
        reward_score=nothing,
        num_turns=0,  # its default would be left out, and verl then finds the column in no row
        metrics=AgentLoopMetrics(),
        extra_fields={**fields, TURNS: [], "reward_extra_info": info},
    )


def _token_rewards(spans: Sequence[TurnSpan], turns: Sequence[Turn], length: int) -> list[float]:
    rewards = [0.0] * length
    for span in spans:
        rewards[span.end - 1] = turns[span.turn].reward
    return rewards
