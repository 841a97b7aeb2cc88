"""Episodes as the rows that ROLL trains on, and what rows carry through ROLL beside their tokens."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray

from gem_core.advantages import TurnBatch
from gem_core.rollout import Episode, EpisodeSummary
from gem_core.training.layout import Layout
from gem_core.training.rows import TurnSpan, turn_spans, view_sequences
from gem_core.training.settings import RowKind

NOTE = "gem"
"""Name of the column with notes."""

Tensors = dict[str, torch.Tensor]
Columns = dict[str, NDArray[np.object_]]


class Note(msgspec.Struct, frozen=True):
    """What a row carries: where turns stand in it, what they earned, and what became of the episode."""

    episode: EpisodeSummary | None = None
    """The same on all rows of an episode; `None` where it was dropped."""
    turns: list[TurnSpan] = []
    """In positions of the row."""
    rewards: list[float] = []
    """One per turn of the row."""

    def encode(self) -> str:
        """As ASCII text; errors of environments may hold what is no Unicode."""
        return json.dumps(msgspec.to_builtins(self))

    @classmethod
    def decode(cls, text: str) -> Note:
        """The note in a text."""
        return msgspec.convert(json.loads(text), cls)


@dataclass(frozen=True)
class Row:
    """Token ids of any length, and what is to be learned from them."""

    ids: list[int]
    prompt: int
    """So many of them stand before the first response."""
    mask: list[int]
    """1 for each id that was sampled, 0 for the rest."""
    logprobs: list[float]
    """Of each id under the policy that sampled it; 0 where it was not sampled, or where nobody can say."""
    note: Note


def episode_rows(episode: Episode, kind: RowKind) -> list[Row]:
    """The rows of an episode with turns.

    Args:
        episode: what was played.
        kind: `episode` for as few rows as exact prefixes allow, as a rule one; `turn` for one per turn.
    """
    summary = episode.summary()
    rows: list[Row] = []
    for one in view_sequences(episode.turns, kind):
        before = len(one.prompt_ids)
        spans = list(turn_spans(one.turn_of, before))
        logprobs = one.logprobs or [0.0] * len(one.completion_ids)
        rows.append(
            Row(
                ids=one.prompt_ids + one.completion_ids,
                prompt=before,
                mask=[0] * before + one.mask,
                logprobs=[0.0] * before + [0.0 if math.isnan(number) else number for number in logprobs],
                note=Note(summary, spans, [episode.turns[span.turn].reward for span in spans]),
            )
        )
    return rows


def turn_batch(notes: Sequence[Note], layout: Layout) -> TurnBatch:
    """The turns of a batch, from the notes of its rows and where turns stand in them.

    Raises:
        AdvantageError: turns are missing or there twice.
    """
    rewards = np.array([reward for note in notes for reward in note.rewards], dtype=np.float64)
    return TurnBatch(rewards, layout.episode, layout.turn, layout.group)


def silent_row(episode: Episode | None) -> Row:
    """A row that trains nothing, for an episode without turns; ROLL waits for as many episodes as it asked for.

    Args:
        episode: `None` where it was dropped.
    """
    # One token, as attention to none at all is no number; any will do, and every vocabulary has this one.
    return Row([0], 1, [0], [0.0], Note(None if episode is None else episode.summary()))


def tensors(rows: Sequence[Row], length: int, pad: int) -> Tensors:
    """ROLL's tensors for these rows, filled up on the right.

    Args:
        rows: of at most `length` ids.
        length: ROLL's `sequence_length`.
        pad: the id to fill up with.

    Returns:
        Of shape (rows, length): ids, three masks, positions, and `scores`, the row's rewards on its last id. Of shape
        (rows, length - 1): `infer_logprobs`, shifted by one as ROLL has them.
    """
    count = len(rows)
    filled: Tensors = {
        "input_ids": torch.full((count, length), pad, dtype=torch.long),
        "attention_mask": torch.zeros(count, length, dtype=torch.long),
        "position_ids": torch.zeros(count, length, dtype=torch.long),
        "response_mask": torch.zeros(count, length, dtype=torch.bool),
        "prompt_mask": torch.zeros(count, length, dtype=torch.bool),
        "scores": torch.zeros(count, length, dtype=torch.float32),
        "infer_logprobs": torch.zeros(count, length, dtype=torch.float32),
    }
    for at, row in enumerate(rows):
        end = len(row.ids)
        filled["input_ids"][at, :end] = torch.tensor(row.ids)
        filled["attention_mask"][at, :end] = 1
        filled["position_ids"][at, :end] = torch.arange(end)
        filled["response_mask"][at, :end] = torch.tensor(row.mask, dtype=torch.bool)
        filled["prompt_mask"][at, : row.prompt] = True
        filled["scores"][at, end - 1] = sum(row.note.rewards)
        filled["infer_logprobs"][at, :end] = torch.tensor(row.logprobs)
    filled["infer_logprobs"] = filled["infer_logprobs"][:, 1:].contiguous()
    return filled


def columns(rows: Sequence[Row], *, env_id: str, env: int, group: int, episode: str, task: str) -> Columns:
    """What ROLL wants to know of each row beside its tensors, and the note.

    Args:
        rows: of one episode.
        env_id: of the environment; ROLL logs evaluations by it.
        env, group: numbers of the environment manager and its group.
        episode, task: unique names of both.
    """
    total = sum(sum(row.note.rewards) for row in rows)
    entries = [
        {
            "episode_scores": total,
            "step_scores": sum(row.note.rewards),
            "tags": env_id,
            "env_ids": env,
            "group_ids": group,
            "step": step,
            "traj_id": episode,
            "traj_group_id": task,
            NOTE: row.note.encode(),
        }
        for step, row in enumerate(rows)
    ]
    return {name: np.array([entry[name] for entry in entries], dtype=object) for name in entries[0]}
