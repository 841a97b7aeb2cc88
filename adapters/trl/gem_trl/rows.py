"""Episodes as the rows that `GRPOTrainer` trains on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gem_core.errors import AdapterError
from gem_core.rollout import NOT_SAMPLED, Episode, merge_turns


@dataclass(frozen=True)
class Row:
    """One training row. `turn_of` names for each completion token the turn, counted over the batch, that it is of."""

    prompt_ids: list[int]
    completion_ids: list[int]
    turn_of: list[int]
    logprobs: list[float] | None


def episode_rows(episodes: Sequence[Episode]) -> list[Row]:
    """One row per episode that has a turn.

    Raises:
        AdapterError: the prompts of an episode are no exact continuation of each other.
    """
    rows: list[Row] = []
    first_turn = 0
    for episode in episodes:
        sequences = merge_turns(episode.turns)
        if len(sequences) > 1:
            raise AdapterError(
                f"{episode.env_id} (seed {episode.seed}): its {len(episode.turns)} turns make {len(sequences)} "
                "sequences, because a prompt does not continue the one before id by id. Use row='turn'."
            )
        for one in sequences:
            turn_of = [turn if turn == NOT_SAMPLED else first_turn + turn for turn in one.turn_of]
            rows.append(Row(one.prompt_ids, one.completion_ids, turn_of, one.logprobs))
        first_turn += len(episode.turns)
    return rows


def turn_rows(episodes: Sequence[Episode]) -> list[Row]:
    """One row per turn."""
    turns = [turn for episode in episodes for turn in episode.turns]
    return [
        Row(turn.prompt_ids, turn.response_ids, [index] * len(turn.response_ids), turn.logprobs)
        for index, turn in enumerate(turns)
    ]


def pad_rows(rows: Sequence[Row], count: int, pad_id: int) -> list[Row]:
    """Fill up to `count` rows with rows of one token that is masked out of the loss."""
    padding = Row([pad_id], [pad_id], [NOT_SAMPLED], [0.0])
    return [*rows, *[padding] * (count - len(rows))]


def rollout_output(rows: Sequence[Row], *, with_logprobs: bool) -> dict[str, Any]:
    """What TRL's `rollout_func` returns."""
    return {
        "prompt_ids": [row.prompt_ids for row in rows],
        "completion_ids": [row.completion_ids for row in rows],
        "logprobs": [row.logprobs for row in rows] if with_logprobs else None,
        "env_mask": [[int(turn != NOT_SAMPLED) for turn in row.turn_of] for row in rows],
    }


def token_advantages(rows: Sequence[Row], advantages: NDArray[np.float64], width: int) -> NDArray[np.float32]:
    """Each turn's advantage on its own tokens, 0 elsewhere: shape (rows, width)."""
    table = np.zeros((len(rows), width), dtype=np.float32)
    # One zero at the end, so that NOT_SAMPLED = -1 picks it.
    lookup = np.append(advantages, 0.0)
    for line, row in zip(table, rows, strict=True):
        line[: len(row.turn_of)] = lookup[row.turn_of]
    return table
