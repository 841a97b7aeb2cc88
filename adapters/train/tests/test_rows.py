"""Rows to train on: every turn once, with the tokens that were sampled and the prompt that was seen."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gem_core.episode import Episode, TokenSequence, Turn, as_logprobs, as_token_ids
from gem_core.errors import AdvantageError
from gem_support.example_counts import examples
from gem_train.rows import Row, RowKind, TurnSpan, cut_rows, rows_of, state_of
from gem_train.turn_table import TurnTable

prop = settings(deadline=None, max_examples=examples(80))
kinds = pytest.mark.parametrize("kind", ["episode", "turn"])
ids = st.lists(st.integers(0, 5), min_size=1, max_size=4)
drawn_turns = st.lists(st.tuples(st.booleans(), ids, ids), max_size=6)


def played(drawn: list[tuple[bool, list[int], list[int]]], *, unanswered: bool = False) -> Episode:
    """An episode whose turns continue the one before or start a sequence; turn `i` has the reward `i`."""
    episode = Episode("demo:A-v0", 1)
    for position, (continues, prompt, response) in enumerate(drawn):
        if continues and episode.sequences:
            episode.sequences[-1].add_prompt(as_token_ids(prompt))
        else:
            episode.sequences.append(TokenSequence.starting(as_token_ids(prompt)))
        sequence = episode.sequences[-1]
        start = len(sequence.ids)
        sequence.add_response(as_token_ids(response), as_logprobs(-float(number + 1) for number in response))
        number, end = len(episode.sequences) - 1, len(sequence.ids)
        episode.turns.append(Turn(number, start, end, "", "", "", position % 2 == 1, float(position)))
    if unanswered and episode.sequences:
        episode.sequences[-1].add_prompt(as_token_ids([9, 9, 9]))
    return episode


@kinds
@prop
@given(drawn_turns, st.booleans())
def test_rows_have_every_turn_once_and_as_it_was(
    kind: RowKind, drawn: list[tuple[bool, list[int], list[int]]], unanswered: bool
) -> None:
    episode = played(drawn, unanswered=unanswered)
    rows = rows_of(episode, kind)
    assert [span.position for row in rows for span in row.turns] == [*range(len(drawn))]
    assert len(rows) == (len(drawn) if kind == "turn" else len({turn.sequence for turn in episode.turns}))
    for row in rows:
        assert row.logprobs is not None
        assert len(row.ids) == len(row.logprobs) == len(row.mask)
        assert row.prompt_ids + row.completion_ids == row.ids.tolist()
        assert row.mask == [0] * row.prompt_length + row.completion_mask
        assert row.completion_mask[0] == row.completion_mask[-1] == 1
        for position, start, end, reward, truncated, state in row.turns:
            turn = episode.turns[position]
            assert row.ids[:start] == episode.prompt_ids(turn)
            assert row.ids[start:end] == episode.response_ids(turn)
            assert row.logprobs[start:end] == episode.response_logprobs(turn)
            assert (reward, truncated, state) == (turn.reward, turn.truncated, state_of(turn.observation))
        assert sum(row.mask) == sum(span.end - span.start for span in row.turns)
        assert all(value == 0.0 for value, one in zip(row.logprobs, row.mask, strict=True) if not one)


def test_rows_by_hand() -> None:
    episode = played([(False, [1, 2], [3, 4]), (True, [5, 5], [0])], unanswered=True)
    [row] = rows_of(episode, "episode")
    assert (row.prompt_ids, row.completion_ids) == ([1, 2], [3, 4, 5, 5, 0])
    assert row.completion_mask == [1, 1, 0, 0, 1]
    assert row.completion_logprobs == [-4.0, -5.0, 0.0, 0.0, -1.0]
    state = state_of("")
    assert row.turns == [TurnSpan(0, 2, 4, 0.0, False, state), TurnSpan(1, 6, 7, 1.0, True, state)]
    first, second = rows_of(episode, "turn")
    assert (first.prompt_ids, first.completion_ids) == ([1, 2], [3, 4])
    assert (second.prompt_ids, second.completion_ids) == ([1, 2, 3, 4, 5, 5], [0])
    # What an earlier turn sampled is part of this row's prompt.
    assert second.logprobs == as_logprobs([0, 0, 0, 0, 0, 0, -1])


def test_log_probabilities_of_a_row_are_there_for_every_token_or_not_at_all() -> None:
    episode = played([(False, [1], [2]), (True, [3], [4, 4]), (False, [5], [1])])
    assert [row.logprobs is None for row in rows_of(episode, "episode")] == [False, False]
    episode.sequences[0].logprobs[3] = math.nan  # one token of the second turn
    assert [row.completion_logprobs for row in rows_of(episode, "episode")] == [None, [-2.0]]
    assert [row.completion_logprobs for row in rows_of(episode, "turn")] == [[-3.0], None, [-2.0]]


def test_no_turns_give_no_rows() -> None:
    assert rows_of(played([]), "episode") == rows_of(played([]), "turn") == []


# -- cuts --------------------------------------------------------------------------------------------------------------


@prop
@given(st.lists(drawn_turns.filter(bool), min_size=1, max_size=4), st.integers(1, 7))
def test_a_cut_keeps_every_sampled_token_with_all_that_came_before_it(
    drawn: list[list[tuple[bool, list[int], list[int]]]], multiple: int
) -> None:
    rows = [row for one in drawn for row in rows_of(played(one), "episode")]
    parts = cut_rows(rows, multiple)
    assert len(parts) % multiple == 0
    assert len(rows) <= len(parts) < len(rows) + multiple
    for number, row in enumerate(rows):
        own = sorted((part.turns[0].position, part) for source, part in parts if source == number and part.turns)
        assert [turn for _, part in own for turn in part.turns] == row.turns
        for _, part in own:
            assert part.ids == row.ids[: part.turns[-1].end]
            assert part.logprobs == (row.logprobs and row.logprobs[: part.turns[-1].end])


def test_what_cannot_be_cut_is_filled_up_with_rows_without_turns() -> None:
    [row] = rows_of(played([(False, [1, 2, 3], [4, 5])]), "episode")
    (_, kept), (source, filler) = cut_rows([row], 2)
    assert (kept, source) == (row, 0)
    assert (filler.ids.tolist(), filler.turns, filler.mask) == ([1, 2], [], [0, 0])


# -- the table ---------------------------------------------------------------------------------------------------------


def table_of(rows: list[list[Row]], first_columns: list[int] | None = None) -> TurnTable:
    """The table of episodes, each with its rows; episode `i` is of task `i // 2`."""
    numbers = [number for number, own in enumerate(rows) for _ in own]
    spans = [row.turns for own in rows for row in own]
    return TurnTable.of(spans, numbers, [number // 2 for number in numbers], first_columns)


@kinds
@prop
@given(st.lists(drawn_turns, max_size=4), st.integers(0, 3))
def test_sums_firsts_and_spread_are_those_of_a_loop(
    kind: RowKind, drawn: list[list[tuple[bool, list[int], list[int]]]], split: int
) -> None:
    rows = [rows_of(played(one), kind) for one in drawn]
    table = table_of(rows)
    flat = [row for own in rows for row in own]
    width = max((len(row.ids) for row in flat), default=0)
    dice = np.random.default_rng(len(flat))
    whole = dice.normal(size=(len(flat), width))
    parts = [whole[:split], whole[split:]]
    spans = [(at, *span) for at, row in enumerate(flat) for span in row.turns]
    assert len(table) == len(spans)
    assert table.row.tolist() == [at for at, *_ in spans]
    assert table.reward.tolist() == [reward for *_, reward, _, _ in spans]
    assert table.truncated.tolist() == [truncated for *_, truncated, _ in spans]
    assert table.length.tolist() == [end - start for _, _, start, end, *_ in spans]
    np.testing.assert_allclose(table.sums(parts), [whole[at, start:end].sum() for at, _, start, end, *_ in spans])
    assert table.firsts(parts).tolist() == [whole[at, start] for at, _, start, *_ in spans]
    numbers = dice.normal(size=len(table))
    expected, firsts = np.zeros_like(whole, dtype=np.float32), np.zeros_like(whole, dtype=np.float32)
    for (at, _, start, end, *_), number in zip(spans, numbers, strict=True):
        expected[at, start:end] = firsts[at, start] = number
    shapes = [part.shape for part in parts]
    assert (np.concatenate(table.spread(numbers, shapes)) == expected).all()
    assert (np.concatenate(table.spread(numbers, shapes, first_only=True)) == firsts).all()


def test_columns_may_start_after_the_prompt() -> None:
    [row] = rows_of(played([(False, [1, 2], [3, 4]), (True, [5, 5], [0])]), "episode")
    table = table_of([[row]], [row.prompt_length])
    assert (table.start.tolist(), table.end.tolist()) == ([0, 4], [2, 5])
    [spread] = table.spread(np.array([1.0, 2.0]), [(1, 5)])
    assert spread.tolist() == [[1.0, 1.0, 0.0, 0.0, 2.0]]


def test_a_table_follows_rows_that_a_framework_puts_in_another_order() -> None:
    rows = [rows_of(played([(False, [1], [2])] * (number + 1)), "episode") for number in range(2)]
    table = table_of(rows)
    assert table.row.tolist() == [0, 1, 2]
    # Row 3 is one that the framework has added.
    assert table.reordered([2, 3, 0, 1]).row.tolist() == [2, 3, 0]


def test_a_table_knows_the_names_of_its_episodes() -> None:
    """Numbers leave out episodes without turns; names do not."""
    turns = [rows_of(played([(False, [1], [2])] * count), "turn") for count in (1, 0, 2)]
    rows = [(number, row) for number, one in enumerate(turns) for row in one]
    table = TurnTable.of([row.turns for _, row in rows], [number for number, _ in rows], [0] * len(rows))
    assert (table.episode.tolist(), table.names) == ([0, 1, 1], [0, 2])


def test_a_table_of_some_turns() -> None:
    table = table_of([rows_of(played([(False, [1], [2])] * 3), "turn")])
    some = table.only(np.array([True, False, True]))
    assert (len(some), some.position.tolist(), some.row.tolist()) == (2, [0, 2], [0, 2])
    assert some.names == table.names


def test_the_batch_for_estimators_has_rewards_tasks_and_positions() -> None:
    rows = [rows_of(played([(False, [1], [2]), (True, [1], [2])]), "turn") for _ in range(3)]
    batch = table_of(rows).batch()
    assert batch.rewards.tolist() == [0.0, 1.0] * 3
    assert batch.episode.tolist() == [0, 0, 1, 1, 2, 2]
    assert batch.group_key.tolist() == [0, 0, 0, 0, 1, 1]
    assert batch.turn.tolist() == [0, 1] * 3
    shaped = table_of(rows).batch(np.arange(6.0), np.ones(6))
    assert (shaped.rewards.tolist(), shaped.values) == ([0.0, 1.0, 2.0, 3.0, 4.0, 5.0], pytest.approx(np.ones(6)))


def test_tables_that_do_not_fit_the_turns_are_refused() -> None:
    rows = [rows_of(played([(False, [1], [2, 3])]), "episode") for _ in range(3)]
    table = table_of(rows)
    with pytest.raises(AdvantageError, match=r"the turns have 3 rows, but the tables .* have 2"):
        table.sums([np.ones((2, 8))])
    with pytest.raises(AdvantageError, match="columns 1 to 2, outside the tables"):
        table.firsts([np.ones((3, 2))])
    with pytest.raises(AdvantageError, match="columns -1 to 0, outside the tables"):
        table_of(rows, [2] * 3).spread(np.ones(3), [(3, 2)])
    with pytest.raises(AdvantageError, match=r"shape \(9,\) for 3 turns"):
        table.spread(np.ones(9), [(3, 8)])
    for order in ([0, 1], [0, 1, 2, 2]):
        with pytest.raises(AdvantageError, match="does not name every row with turns, or names a row twice"):
            table.reordered(order)
    with pytest.raises(ValueError, match="shorter"):
        table_of(rows, [])


def test_a_missing_turn_is_an_error() -> None:
    [row] = rows_of(played([(False, [1], [2]), (True, [1], [2])]), "episode")
    with pytest.raises(AdvantageError):
        TurnTable.of([row.turns[1:]], ["e"], [0]).batch()


def test_a_state_is_the_same_everywhere() -> None:
    # Processes of other machines must get this number, too.
    assert state_of("the number is smaller than 7") == -4634644274913638331
    assert state_of("the number is smaller than 8") != state_of("the number is smaller than 7")
    assert -(2**63) <= state_of("\ud800 a lone surrogate") < 2**63


def test_a_table_carries_the_states() -> None:
    spans = [[TurnSpan(0, 1, 2, 0.0, False, 5), TurnSpan(1, 3, 4, 1.0, False, -6)], [TurnSpan(0, 1, 2, 0.0, False, 5)]]
    batch = TurnTable.of(spans, ["a", "b"], [0, 0]).batch()
    assert batch.state is not None
    assert batch.state.tolist() == [5, -6, 5]
