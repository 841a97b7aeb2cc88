"""Episodes as ROLL's training rows, and the metadata that a row carries through ROLL."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from gem_core.episode import Episode, as_token_ids
from gem_train.results import EpisodeResult
from gem_train.rows import Row, RowKind, TurnSpan, rows_of
from gem_train.turn_table import TurnTable

METADATA = "gem"
"""Name of the column with encoded `RowMetadata`."""

Tensors = dict[str, torch.Tensor]
Columns = dict[str, NDArray[np.object_]]


class RowMetadata(EpisodeResult, frozen=True, kw_only=True):
    """The metadata of a row: the result of its episode, and its turns."""

    turns: list[TurnSpan]


# One token, because attention to no token is NaN. Every vocabulary has this id.
_SILENT = Row(as_token_ids([0]), 1, None, [])


def training_rows(episode: Episode | None, kind: RowKind) -> list[Row]:
    """The rows of an episode, at least one: ROLL waits for a row of every episode.

    Args:
        episode: a finished episode; `None` if it was dropped. An episode without turns has one row that trains nothing.
        kind: what a row is.
    """
    return (rows_of(episode, kind) if episode is not None else []) or [_SILENT]


def turn_table(metadata: Sequence[RowMetadata], episodes: Sequence[str]) -> TurnTable:
    """The turns of a batch. ROLL's tables leave out the first token, which is not predicted, so column 0 is position 1
    of a row.

    Args:
        metadata: the metadata of each row.
        episodes: the name of each row's episode.
    """
    return TurnTable.of(
        [one.turns for one in metadata],
        episodes,
        [one.task_id for one in metadata],
        [1] * len(metadata),
        group_keys=[one.group_key for one in metadata],
        roles=[one.role for one in metadata],
    )


def tensors(rows: Sequence[Row], length: int, pad: int) -> Tensors:
    """ROLL's tensors for these rows, padded on the right.

    Args:
        rows: rows of at most `length` ids.
        length: ROLL's `sequence_length`.
        pad: the padding id.

    Returns:
        Of shape (rows, length): ids, three masks, positions, and `scores`, the sum of the row's rewards on its last id.
        Of shape (rows, length - 1): `infer_logprobs`, shifted by one as in ROLL, 0 in rows of which some are unknown.
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
    for number, row in enumerate(rows):
        end = len(row.ids)
        filled["input_ids"][number, :end] = torch.from_numpy(np.array(row.ids))
        filled["attention_mask"][number, :end] = 1
        filled["position_ids"][number, :end] = torch.arange(end)
        filled["response_mask"][number, :end] = torch.tensor(row.mask, dtype=torch.bool)
        filled["prompt_mask"][number, : row.prompt_length] = True
        filled["scores"][number, end - 1] = _reward(row)
        if row.logprobs is not None:
            filled["infer_logprobs"][number, :end] = torch.tensor(row.logprobs)
    filled["infer_logprobs"] = filled["infer_logprobs"][:, 1:].contiguous()
    return filled


def columns(
    played: Sequence[tuple[EpisodeResult, Sequence[Row]]],
    *,
    env_id: str,
    env: int,
    group: int,
    episode: str,
    task_name: str,
) -> Columns:
    """The columns that ROLL needs besides the tensors, and the metadata of each row.

    Args:
        played: the result and rows of an episode, or of each agent of a match.
        env_id: id of the environment; ROLL logs evaluations by it.
        env, group: numbers of the environment manager and its group.
        episode, task_name: unique names of the episode and its task. Each further agent of a match has its own.
    """
    entries = [
        {
            "episode_scores": sum(map(_reward, rows)),
            "step_scores": _reward(row),
            "tags": env_id,
            "env_ids": env,
            "group_ids": group,
            "step": step,
            "traj_id": f"{episode}-{number}" if number else episode,
            "traj_group_id": task_name,
            METADATA: RowMetadata(result.summary, result.fatal, turns=row.turns).encode(),
        }
        for number, (result, rows) in enumerate(played)
        for step, row in enumerate(rows)
    ]
    return {name: np.array([entry[name] for entry in entries], dtype=object) for name in entries[0]}


def _reward(row: Row) -> float:
    return sum(turn.reward for turn in row.turns)
