"""Episodes as ROLL's rows: every id and every turn is where ROLL expects it."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
import torch
from recorded import COLUMNS, LENGTH, TENSORS

from gem_core.advantages import compute_advantages
from gem_core.episode import Episode
from gem_core.errors import AdvantageError
from gem_roll._rows import METADATA, Columns, RowMetadata, columns, tensors, training_rows, turn_table
from gem_support.brute_force import expected
from gem_support.hand_made import Said, hand_made, random_episodes
from gem_train.results import EpisodeResult
from gem_train.rows import Row

PAD = 9


TWO_TURNS = hand_made(
    Said([1, 2], [3, 4], 0.5, [-0.5, -0.5]), Said([1, 2, 3, 4, 5], [6], -2.0, [-0.25]), env_id="test:One-v0"
)


def beside(rows: list[Row], episode: Episode = TWO_TURNS) -> Columns:
    result = EpisodeResult(episode.summary())
    return columns([(result, rows)], env_id=episode.env_id, env=3, group=1, episode="e", task_name="t")


def metadata(found: Columns) -> list[RowMetadata]:
    return [RowMetadata.decode(text) for text in found[METADATA]]


def test_rows_have_the_form_of_rolls_own_managers():
    filled = tensors(training_rows(TWO_TURNS, "turn"), LENGTH, PAD)
    assert {name: (str(one.dtype), one.shape[1]) for name, one in filled.items()} == TENSORS
    found = beside(training_rows(TWO_TURNS, "turn"))
    assert {*found} == COLUMNS - {"state_hash"} | {"traj_id", "traj_group_id", METADATA}
    assert all(one.dtype == object and one.shape == (2,) for one in found.values())


def test_an_episode_is_one_row_with_its_turns_in_it():
    (row,) = training_rows(TWO_TURNS, "episode")
    filled = {name: one[0] for name, one in tensors([row], 8, PAD).items()}
    assert filled["input_ids"].tolist() == [1, 2, 3, 4, 5, 6, PAD, PAD]
    assert filled["attention_mask"].tolist() == [1, 1, 1, 1, 1, 1, 0, 0]
    assert filled["position_ids"].tolist() == [0, 1, 2, 3, 4, 5, 0, 0]
    assert filled["response_mask"].tolist() == [False, False, True, True, False, True, False, False]
    assert filled["prompt_mask"].tolist() == [True, True] + [False] * 6
    assert filled["scores"].tolist() == [0, 0, 0, 0, 0, -1.5, 0, 0]
    # For the token after each position: ROLL compares them with the trainer's.
    assert filled["infer_logprobs"].tolist() == [0, -0.5, -0.5, 0, -0.25, 0, 0]


def test_a_turn_is_a_row():
    filled = tensors(training_rows(TWO_TURNS, "turn"), 8, PAD)
    assert filled["input_ids"].tolist() == [[1, 2, 3, 4] + [PAD] * 4, [1, 2, 3, 4, 5, 6, PAD, PAD]]
    assert filled["response_mask"].sum(-1).tolist() == [2, 1]
    found = beside(training_rows(TWO_TURNS, "turn"))
    assert found["step_scores"].tolist() == [0.5, -2.0]
    assert found["episode_scores"].tolist() == [-1.5, -1.5]
    assert found["step"].tolist() == [0, 1]
    assert found["tags"].tolist() == ["test:One-v0"] * 2


@pytest.mark.parametrize("logprobs", [[math.nan, -1.0, -2.0], None])
def test_unknown_log_probabilities_are_0(logprobs: list[float] | None):
    rows = training_rows(hand_made(Said([1], [2, 3, 4], 0.0, logprobs)), "episode")
    assert tensors(rows, 4, PAD)["infer_logprobs"].tolist() == [[0.0, 0.0, 0.0]]


def test_an_episode_without_turns_trains_nothing():
    for played in (None, hand_made()):
        rows = training_rows(played, "episode")
        filled = tensors(rows, 8, PAD)
        assert not filled["response_mask"].any()
        assert filled["attention_mask"].sum() == 1  # attention to no token would be NaN
        assert [row.turns for row in rows] == [[]]


def test_metadata_survives_invalid_unicode():
    broken = hand_made(Said([1], [2], 1.0), task_id=7)
    broken.error = "lost \udc80"
    rows = training_rows(broken, "turn")
    found = beside(rows, broken)
    assert all(text.isascii() for text in found[METADATA])
    assert metadata(found) == [RowMetadata(broken.summary(), turns=rows[0].turns)]
    assert metadata(found)[0].task_id == 7


@pytest.mark.parametrize("kind", ["episode", "turn"])
@pytest.mark.parametrize("name", ["reinforce", "rebn", "rebn_loo", "grpo", "drgrpo", "rloo"])
def test_advantages_are_on_the_tokens_of_their_turns(name: str, kind: Any):
    episodes = random_episodes(random.Random(0), 3, 2, breaks=0.2)
    rows = [(row, number) for number, one in enumerate(episodes) for row in training_rows(one, kind)]
    carried = [one for number in episodes for one in metadata(beside(training_rows(number, kind), number))]
    table = turn_table(carried, [f"e{number}" for _, number in rows])
    numbers, _ = compute_advantages(name, table.batch(), gamma=0.9)
    [found] = map(torch.from_numpy, table.spread(numbers, [(len(rows), 39)]))
    want = expected(name, [[t.reward for t in one.turns] for one in episodes], [n // 2 for n in range(6)], 0.9)
    mask = tensors([one for one, _ in rows], 40, PAD)["response_mask"][:, 1:]
    assert not found[~mask].any()
    flat = [
        number
        for (played, row) in zip(episodes, want, strict=True)
        for t, number in zip(played.turns, row, strict=True)
        for _ in range(t.start, t.end)
    ]
    assert found[mask].tolist() == pytest.approx(flat, abs=1e-6)


def test_a_missing_turn_is_an_error():
    second = metadata(beside(training_rows(TWO_TURNS, "turn")))[1:]
    with pytest.raises(AdvantageError, match="a turn 1 but no turn 0"):
        turn_table(second, ["e"]).batch()
