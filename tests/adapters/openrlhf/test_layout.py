"""Rows cut so that their number fits, and turns found again wherever they stand."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st
from made_up import random_batch

from gem_openrlhf.layout import Places, Turns, batch_rows
from gem_openrlhf.rows import Played, Row, TurnSpan


@effort(max_examples=100, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32), multiple=st.integers(1, 12), view=st.sampled_from(["episode", "turn"]))
def test_cut_rows_have_every_sampled_token_once(seed, multiple, view):
    batch = random_batch(random.Random(seed), view=view)
    whole, rows = batch_rows(batch, 1), batch_rows(batch, multiple)
    assert len(rows) % multiple == 0
    assert len(rows) - len(whole) < multiple
    assert tokens(rows) == tokens(whole)


def tokens(rows: list[Row]) -> list[tuple[int, int, tuple[int, ...], float | None]]:
    """Each sampled token: its turn, its place, what stood before it, and its log-probability."""
    return sorted(
        (span.turn, at, tuple(row.ids[: at + 1]), row.logprobs[at] if row.logprobs else None)
        for row in rows
        for span in row.spans
        for at in range(span.start, span.end)
    )


def test_rows_are_cut_between_turns_first():
    played = Played(rows=[Row([*range(9)], None, [TurnSpan(0, 1, 3), TurnSpan(1, 4, 9)])], rewards=[0.0, 0.0])
    assert [row.spans for row in batch_rows([played], 2)] == [[(0, 1, 3)], [(1, 4, 9)]]
    assert [row.spans for row in batch_rows([played], 3)] == [[(0, 1, 3)], [(1, 4, 7)], [(1, 7, 9)]]


def test_without_a_token_to_cut_rows_are_empty():
    played = Played(rows=[Row([1, 2], None, [TurnSpan(0, 1, 2)])], rewards=[0.0])
    assert [row.spans for row in batch_rows([played], 3)] == [[(0, 1, 2)], [], []]
    assert batch_rows([Played()], 8) == []


def test_places_of_a_turn_that_was_cut():
    places = Places.of([[[TurnSpan(1, 6, 8)], [TurnSpan(0, 1, 3), TurnSpan(1, 4, 6)]]])
    table = np.arange(16, dtype=float).reshape(2, 8)
    assert places.lengths(2).tolist() == [2, 4]
    assert places.sums([table], 2).tolist() == [8 + 9, 5 + 6 + 11 + 12]
    assert places.firsts([table], 2).tolist() == [8, 11]
    (spread,) = places.spread(np.array([2.0, 3.0]), [(2, 8)])
    assert spread.tolist() == [[0, 0, 0, 0, 0, 3, 3, 0], [2, 2, 0, 3, 3, 0, 0, 0]]
    (first,) = places.spread(np.array([2.0, 3.0]), [(2, 8)], first_only=True)
    assert first.tolist() == [[0] * 8, [2, 0, 0, 3, 0, 0, 0, 0]]


def test_turns_of_episodes_without_any():
    batch = [Played(), *random_batch(random.Random(1)), Played()]
    turns = Turns.of(batch)
    assert len(turns) == sum(len(one.rewards) for one in batch)
    assert {*turns.episode.tolist()} == {number for number, one in enumerate(batch) if one.rewards}
    assert turns.rewards.tolist() == pytest.approx([reward for one in batch for reward in one.rewards])
