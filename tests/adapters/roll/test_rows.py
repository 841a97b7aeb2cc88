"""Episodes as ROLL's rows: every id where ROLL looks for it, and every turn where its advantage goes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from brute_force import expected
from gem_core.training.layout import Layout
from recorded import COLUMNS, LENGTH, TENSORS

from gem_core.advantages import compute_advantages
from gem_core.errors import AdvantageError
from gem_core.rollout import Episode, StopReason, Turn
from gem_roll.rows import NOTE, Note, columns, episode_rows, silent_row, tensors, turn_batch

PAD = 9


def turn(prompt: list[int], response: list[int], reward: float, logprobs: list[float] | None = None) -> Turn:
    return Turn("seen", prompt, response, logprobs or [-0.5] * len(response), "said", "said", False, reward)


def episode(turns: list[Turn], group: int = 0) -> Episode:
    return Episode("test:One-v0", seed=1, group=group, turns=turns, stop_reason=StopReason.TERMINATED)


TWO_TURNS = episode([turn([1, 2], [3, 4], 0.5), turn([1, 2, 3, 4, 5], [6], -2.0, [-0.25])])


def test_rows_are_what_rolls_own_managers_give():
    filled = tensors(episode_rows(TWO_TURNS, "turn"), LENGTH, PAD)
    assert {name: (str(one.dtype), one.shape[1]) for name, one in filled.items()} == TENSORS
    beside = columns(episode_rows(TWO_TURNS, "turn"), env_id="x", env=0, group=0, episode="e", task="t")
    assert {*beside} == COLUMNS - {"state_hash"} | {"traj_id", "traj_group_id", NOTE}
    assert all(one.dtype == object and one.shape == (2,) for one in beside.values())


def test_an_episode_is_one_row_with_its_turns_in_it():
    (row,) = episode_rows(TWO_TURNS, "episode")
    filled = {name: one[0] for name, one in tensors([row], 8, PAD).items()}
    assert filled["input_ids"].tolist() == [1, 2, 3, 4, 5, 6, PAD, PAD]
    assert filled["attention_mask"].tolist() == [1, 1, 1, 1, 1, 1, 0, 0]
    assert filled["position_ids"].tolist() == [0, 1, 2, 3, 4, 5, 0, 0]
    assert filled["response_mask"].tolist() == [False, False, True, True, False, True, False, False]
    assert filled["prompt_mask"].tolist() == [True, True] + [False] * 6
    assert filled["scores"].tolist() == [0, 0, 0, 0, 0, -1.5, 0, 0]
    # Of the token after each: ROLL compares them with what the trainer says of it.
    assert filled["infer_logprobs"].tolist() == [0, -0.5, -0.5, 0, -0.25, 0, 0]


def test_a_turn_is_a_row():
    filled = tensors(episode_rows(TWO_TURNS, "turn"), 8, PAD)
    assert filled["input_ids"].tolist() == [[1, 2, 3, 4] + [PAD] * 4, [1, 2, 3, 4, 5, 6, PAD, PAD]]
    assert filled["response_mask"].sum(-1).tolist() == [2, 1]
    beside = columns(episode_rows(TWO_TURNS, "turn"), env_id="test:One-v0", env=3, group=1, episode="e", task="t")
    assert beside["step_scores"].tolist() == [0.5, -2.0]
    assert beside["episode_scores"].tolist() == [-1.5, -1.5]
    assert beside["step"].tolist() == [0, 1]
    assert beside["tags"].tolist() == ["test:One-v0"] * 2


def test_what_an_engine_cannot_say_of_a_token_is_not_passed_on_as_a_number_that_is_none():
    (row,) = episode_rows(episode([turn([1], [2, 3], 0.0, [math.nan, -1.0])]), "episode")
    assert row.logprobs == [0.0, 0.0, -1.0]


def test_an_episode_without_turns_trains_nothing():
    for played in (None, episode([])):
        row = silent_row(played)
        filled = tensors([row], 8, PAD)
        assert not filled["response_mask"].any()
        assert filled["attention_mask"].sum() == 1  # attention to nothing would be no number
        assert row.note.turns == []
        assert (row.note.episode is None) == (played is None)


def test_a_note_survives_text_that_is_no_unicode():
    broken = episode([turn([1], [2], 1.0)])
    broken.error = "lost \udc80"
    (row,) = episode_rows(broken, "turn")
    text = row.note.encode()
    assert text.isascii()
    assert Note.decode(text) == row.note


@pytest.mark.parametrize("view", ["episode", "turn"])
@pytest.mark.parametrize("name", ["reinforce", "rebn", "rebn_loo", "grpo", "drgrpo", "rloo"])
def test_advantages_stand_on_their_turns_tokens(name: str, view: str):
    random = np.random.default_rng(0)
    episodes: list[Episode] = []
    for number in range(6):
        turns, before = [], [1]
        for _ in range(random.integers(1, 4)):
            response = random.integers(2, 8, random.integers(1, 4)).tolist()
            turns.append(turn(before, response, float(random.normal())))
            before = [*before, *response, 8]
        episodes.append(episode(turns, group=number // 2))
    rows = [(one, number) for number, played in enumerate(episodes) for one in episode_rows(played, view)]
    notes = [one.note for one, _ in rows]
    layout = Layout.of(
        [f"e{number}" for _, number in rows],
        [f"t{number // 2}" for _, number in rows],
        [note.turns for note in notes],
    )
    numbers, _ = compute_advantages(name, turn_batch(notes, layout), gamma=0.9)
    table = torch.from_numpy(layout.spread(numbers, (len(rows), 40))[:, 1:])
    want = expected(name, [[t.reward for t in one.turns] for one in episodes], [n // 2 for n in range(6)], 0.9)
    mask = tensors([one for one, _ in rows], 40, PAD)["response_mask"][:, 1:]
    assert not table[~mask].any()
    flat = [
        number
        for (played, row) in zip(episodes, want, strict=True)
        for t, number in zip(played.turns, row, strict=True)
        for _ in t.response_ids
    ]
    assert table[mask].tolist() == pytest.approx(flat, abs=1e-6)


def test_a_missing_turn_is_an_error():
    rows = episode_rows(TWO_TURNS, "turn")
    with pytest.raises(AdvantageError, match="a turn 1 but no turn 0"):
        turn_batch([rows[1].note], Layout.of(["e"], ["t"], [rows[1].note.turns]))
