"""Turns merged into training rows, and what can be read back from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gem_core.rollout import NOT_SAMPLED, ChatTemplate, Conversation, Turn, merge_turns

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

prop = settings(deadline=None, max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
ids = st.lists(st.integers(0, 5), min_size=1, max_size=4)
# Small alphabets and short prompts, so that prompts continue each other by chance as well.
drawn_turns = st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, 5), max_size=4), ids), max_size=6)


def turn(prompt: list[int], response: list[int], logprobs: bool = True) -> Turn:
    values = [-float(index + 1) for index in range(len(response))] if logprobs else None
    return Turn("", prompt, response, values, "", "", False)


def check_round_trip(turns: list[Turn]) -> None:
    """Every turn's prompt, response and log-probabilities can be read back, once and in order."""
    found: list[int] = []
    for row in merge_turns(turns):
        assert len(row.completion_ids) == len(row.turn_of) == len(row.mask)
        assert row.mask == [int(index != NOT_SAMPLED) for index in row.turn_of]
        assert row.mask[0] == row.mask[-1] == 1
        for index in dict.fromkeys(one for one in row.turn_of if one != NOT_SAMPLED):
            found.append(index)
            places = [place for place, one in enumerate(row.turn_of) if one == index]
            assert places == list(range(places[0], places[-1] + 1))
            assert row.prompt_ids + row.completion_ids[: places[0]] == turns[index].prompt_ids
            assert [row.completion_ids[place] for place in places] == turns[index].response_ids
            if row.logprobs is not None:
                assert [row.logprobs[place] for place in places] == turns[index].logprobs
        if row.logprobs is not None:
            assert len(row.logprobs) == len(row.completion_ids)
            assert all(value == 0.0 for value, one in zip(row.logprobs, row.mask, strict=True) if not one)
    assert found == list(range(len(turns)))


@prop
@given(drawn_turns)
def test_merging_loses_nothing(drawn: list[tuple[bool, list[int], list[int]]]) -> None:
    turns: list[Turn] = []
    for goes_on, prompt, response in drawn:
        before = turns[-1].prompt_ids + turns[-1].response_ids if goes_on and turns else []
        turns.append(turn(before + prompt, response))
    check_round_trip(turns)


@pytest.mark.parametrize(("history", "rows"), [(None, 1), (1, 5), (2, 4)])
def test_one_row_with_full_history_and_more_with_less(
    tokenizer: PreTrainedTokenizerFast, history: int | None, rows: int
) -> None:
    conversation = Conversation(ChatTemplate(tokenizer), history)
    turns: list[Turn] = []
    for number in range(5):
        conversation.observe(f"go {number}", {})
        turns.append(turn(conversation.prompt(), [7 + number, tokenizer.eos_token_id]))
        conversation.respond(turns[-1].response_ids)
    check_round_trip(turns)
    assert len(merge_turns(turns)) == rows


def test_a_row_by_hand() -> None:
    [row] = merge_turns([turn([1, 2], [3, 4]), turn([1, 2, 3, 4, 9, 9], [5])])
    assert row.prompt_ids == [1, 2]
    assert row.completion_ids == [3, 4, 9, 9, 5]
    assert row.turn_of == [0, 0, NOT_SAMPLED, NOT_SAMPLED, 1]
    assert row.mask == [1, 1, 0, 0, 1]
    assert row.logprobs == [-1.0, -2.0, 0.0, 0.0, -1.0]


def test_a_prompt_that_changed_anything_begins_a_new_row() -> None:
    first = turn([1, 2], [3, 4])
    for prompt in ([1, 2, 3, 5, 9], [1, 2, 3], [0, 1, 2, 3, 4], []):
        rows = merge_turns([first, turn(prompt, [6])])
        assert [row.prompt_ids for row in rows] == [[1, 2], prompt]
        assert [row.turn_of for row in rows] == [[0, 0], [1]]


def test_log_probabilities_are_all_there_or_none() -> None:
    with_them, without = turn([1], [2]), turn([1, 2, 3], [4], logprobs=False)
    assert merge_turns([with_them, without])[0].logprobs is None
    rows = merge_turns([with_them, turn([7], [4], logprobs=False)])
    assert [row.logprobs for row in rows] == [[-1.0], None]


def test_no_turns_give_no_rows() -> None:
    assert merge_turns([]) == []


def test_merging_changes_no_turn() -> None:
    turns = [turn([1], [2]), turn([1, 2, 3], [4])]
    [row] = merge_turns(turns)
    row.completion_ids.append(99)
    assert [(one.prompt_ids, one.response_ids) for one in turns] == [([1], [2]), ([1, 2, 3], [4])]
