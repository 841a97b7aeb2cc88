"""A trainer's rows of an episode, compared with the prompts and responses of its policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from gem_core.advantages import compute_advantages
from gem_core.episode import Episode, Logprobs, TokenIds
from gem_support.brute_force import returns_to_go
from gem_train.rows import Row, RowKind, rows_of
from gem_train.turn_table import TurnTable

Said: TypeAlias = "tuple[TokenIds, TokenIds, Logprobs]"
"""Of a call of the policy: prompt, ids and log-probabilities."""


def rows_as_sampled(episode: Episode, kind: RowKind, said: Sequence[Said]) -> Sequence[Row]:
    """The rows of an episode, of which each turn is one call of the policy, with the prompt that it saw.

    Args:
        episode, kind: as for `rows_of`.
        said: the calls in order.
    """
    rows = rows_of(episode, kind)
    spans = [(row, turn) for row in rows for turn in row.turns]
    assert len(spans) == len(said)
    for (row, turn), (prompt, ids, logprobs) in zip(spans, said, strict=True):
        assert row.logprobs is not None
        assert row.ids[: turn.start] == prompt
        assert row.ids[turn.start : turn.end] == ids
        assert row.logprobs[turn.start : turn.end] == logprobs
    return rows


def assert_trained_as_sampled(episode: Episode, said: Sequence[Said]) -> None:
    """In both kinds of rows, each call of the policy is one turn of one row, with the prompt that it saw; the rows
    train the sampled tokens and no others, and each turn's advantage is on exactly the turn's tokens."""
    kinds: tuple[RowKind, RowKind] = ("episode", "turn")
    for kind in kinds:
        rows = rows_as_sampled(episode, kind, said)
        turns = TurnTable.of([row.turns for row in rows], [0] * len(rows), [0] * len(rows))
        advantages, _ = compute_advantages("reinforce", turns.batch(), gamma=0.5)
        [table] = turns.spread(advantages, [(len(rows), max(len(row.ids) for row in rows))])
        expected = np.zeros_like(table)
        returns = returns_to_go([turn.reward for turn in episode.turns], 0.5)
        for number, row in enumerate(rows):
            for turn in row.turns:
                expected[number, turn.start : turn.end] = returns[turn.position]
            sampled = {at for turn in row.turns for at in range(turn.start, turn.end)}
            assert {at for at, trained in enumerate(row.mask) if trained} == sampled
        np.testing.assert_allclose(table, expected, rtol=1e-6)
