"""Episodes as the rows that `GRPOTrainer` trains on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from gem_core.episode import Episode, as_logprobs, as_token_ids
from gem_train.rows import Row, RowKind, rows_of
from gem_train.turn_table import TurnTable


def batch_rows(episodes: Sequence[Episode], kind: RowKind) -> tuple[list[Row], TurnTable]:
    """The rows of a batch, and its turns in tables whose first column is the first token of a row's completion.

    Args:
        episodes: the episodes of this process.
        kind: what a row is.
    """
    rows = [(number, row) for number, episode in enumerate(episodes) for row in rows_of(episode, kind)]
    turns = TurnTable.of(
        [row.turns for _, row in rows],
        [number for number, _ in rows],
        [episodes[number].task_id for number, _ in rows],
        [row.prompt_length for _, row in rows],
        group_keys=[episodes[number].group_key for number, _ in rows],
        roles=[episodes[number].role for number, _ in rows],
    )
    return [row for _, row in rows], turns


def pad_rows(rows: Sequence[Row], count: int, pad_id: int) -> list[Row]:
    """Fill up to `count` rows with rows of one completion token, which the loss masks."""
    padding = Row(as_token_ids([pad_id, pad_id]), 1, as_logprobs([0.0, 0.0]), [])
    return [*rows, *[padding] * (count - len(rows))]


def rollout_output(rows: Sequence[Row], *, with_logprobs: bool) -> dict[str, Any]:
    """The return value of TRL's `rollout_func`."""
    return {
        "prompt_ids": [row.prompt_ids for row in rows],
        "completion_ids": [row.completion_ids for row in rows],
        "logprobs": [_logprobs(row) for row in rows] if with_logprobs else None,
        "env_mask": [row.completion_mask for row in rows],
    }


def sampler_table(rows: Sequence[Row], shape: tuple[int, ...]) -> np.ndarray:
    """The sampler's log-probabilities of completions, in a table (rows, tokens); NaN where they are unknown."""
    table = np.full(shape, np.nan)
    for number, row in enumerate(rows):
        known = _logprobs(row)
        table[number, : len(known)] = known
    return table


def _logprobs(row: Row) -> list[float]:
    """Log-probabilities for TRL, which ignores tokens with NaN in its ratios."""
    known = row.completion_logprobs
    return [math.nan] * (len(row.ids) - row.prompt_length) if known is None else known
