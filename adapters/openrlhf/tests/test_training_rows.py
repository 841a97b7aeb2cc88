"""The rows of a batch, cut to a fitting number, and the table of their turns."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st
from made_up import add_turn, random_batch, rewards_of

from gem_core.episode import Episode
from gem_openrlhf._experience import batch_episodes, training_rows
from gem_openrlhf._rows import EpisodeRows
from gem_train.rows import Row
from gem_train.turn_table import TurnTable


@effort(max_examples=100, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32),
    parts=st.integers(1, 12),
    ranks=st.integers(1, 3),
    kind=st.sampled_from(["episode", "turn"]),
)
def test_cut_rows_have_every_sampled_token_once(seed: int, parts: int, ranks: int, kind: str):
    batch = random_batch(random.Random(seed), kind=kind)
    whole, rows = training_rows(batch, 1, 1), training_rows(batch, parts * ranks, ranks)
    assert len(rows[0]) % (parts * ranks) == 0
    assert len(rows[0]) - len(whole[0]) < parts * ranks
    assert tokens(*rows) == tokens(*whole)


def tokens(rows: list[Row], table: TurnTable) -> list[tuple[Any, ...]]:
    """Each sampled token: its episode, task and turn, its position, the ids before it, and its log-probability."""
    found: list[tuple[Any, ...]] = []
    columns = zip(table.row, table.start + 1, table.end + 1, table.task_id, table.position, strict=True)
    for turn, (row, start, end, task, position) in enumerate(columns):
        one = rows[row]
        assert (position, start, end, table.reward[turn]) in {turn[:4] for turn in one.turns}
        assert one.logprobs is not None
        own = (int(task), int(position), float(table.reward[turn]))
        found += [(*own, at, tuple(one.ids[: at + 1]), one.logprobs[at]) for at in range(start, end)]
    return sorted(found)


def one_episode(*turns: tuple[list[int], list[int]]) -> EpisodeRows:
    episode = Episode("test:Babble-v0", 7)
    for prompt, response in turns:
        add_turn(episode, prompt, response, 0.0)
    return EpisodeRows.of(episode, "episode")


def test_rows_are_cut_between_turns_and_then_padded():
    batch = [one_episode(([1], [2, 3]), ([4], [5, 6, 7]))]
    assert [[turn[:3] for turn in row.turns] for row in training_rows(batch, 2, 1)[0]] == [[(0, 1, 3)], [(1, 4, 7)]]
    cut, table = training_rows(batch, 3, 1)
    assert [[turn[:3] for turn in row.turns] for row in cut] == [[(0, 1, 3)], [(1, 4, 7)], []]
    assert (table.row.tolist(), table.episode.tolist()) == ([0, 1], [0, 0])


def test_each_rank_has_its_share_of_rows_without_turns():
    batch = [one_episode(([1], [2])) for _ in range(5)]
    rows, table = training_rows(batch, 12, 3)
    assert [len(row.turns) for row in rows] == [1, 1, 0, 0, 1, 1, 0, 0, 1, 0, 0, 0]
    assert table.row.tolist() == [0, 1, 4, 5, 8]
    assert sorted(Counter(table.episode.tolist()).values()) == [1] * 5


def test_episodes_are_named_as_they_are_counted():
    batch = [
        EpisodeRows(one.summary and msgspec.structs.replace(one.summary, id=str(number)), rows=one.rows)
        for number, one in enumerate([*random_batch(random.Random(1)), EpisodeRows()])
    ]
    _, table = training_rows(batch, 6, 3)
    names = batch_episodes(batch, table)
    for number, name in enumerate(names):
        own = table.episode == number
        rewards = table.reward[own][table.position[own].argsort()]
        assert rewards.tolist() == rewards_of(batch[int(name)])
    assert sorted(names, key=int) == [str(number) for number in range(8)], "all but the dropped one"


def test_no_turns_need_no_rows():
    rows, table = training_rows([EpisodeRows(), EpisodeRows.of(Episode("test:Babble-v0", 7), "turn")], 8, 2)
    assert (rows, len(table)) == ([], 0)


def test_episodes_without_turns_are_left_out():
    batch = [EpisodeRows(), *random_batch(random.Random(1)), EpisodeRows()]
    _, table = training_rows(batch, 1, 1)
    with_turns = [one for one in batch if one.rows]
    assert len({*table.episode.tolist()}) == len(with_turns) < len(batch)
    assert table.reward.tolist() == pytest.approx([reward for one in batch for reward in rewards_of(one)])
    assert table.task_id.tolist() == [
        one.summary.group_id for one in with_turns if one.summary for _ in rewards_of(one)
    ]
