"""What engines send to the trainer: every sampled id once, at its place."""

from __future__ import annotations

import pickle

import pytest
from made_up import add_turn, rewards_of

from gem_core.episode import Episode, StopReason
from gem_openrlhf._rows import EpisodeRows, response


def an_episode() -> Episode:
    return Episode("test:Babble-v0", 7, task_id=5, stop_reason=StopReason.TERMINATED, success=True)


def three_turns() -> Episode:
    episode = an_episode()
    add_turn(episode, [1, 2], [3, 4], 0.5, logprobs=[-0.1, -0.2])
    add_turn(episode, [5, 6], [7], -1.0, logprobs=[-0.3], truncated=True)  # two tokens between, a response of one
    add_turn(episode, [], [8, 9, 10], 2.0, logprobs=[-0.4, -0.5, -0.6])  # no tokens between
    return episode


def test_an_episode_is_one_row():
    one = EpisodeRows.of(three_turns(), "episode")
    (row,) = one.rows
    assert row.ids.tolist() == [*range(1, 11)]
    assert row.logprobs is not None
    assert row.logprobs.tolist() == pytest.approx([0.0, 0.0, -0.1, -0.2, 0.0, 0.0, -0.3, -0.4, -0.5, -0.6])
    assert [turn[:5] for turn in row.turns] == [(0, 2, 4, 0.5, False), (1, 6, 7, -1.0, True), (2, 7, 10, 2.0, False)]


def test_a_turn_is_a_row():
    episode = three_turns()
    rows = EpisodeRows.of(episode, "turn").rows
    assert [row.ids for row in rows] == [episode.prompt_ids(one) + episode.response_ids(one) for one in episode.turns]
    assert [[turn[:5] for turn in row.turns] for row in rows] == [
        [(0, 2, 4, 0.5, False)],
        [(1, 6, 7, -1.0, True)],
        [(2, 7, 10, 2.0, False)],
    ]


def test_a_prompt_that_does_not_continue_starts_another_row():
    episode = an_episode()
    add_turn(episode, [1], [2], 1.0)
    add_turn(episode, [3], [4], 2.0)
    add_turn(episode, [9], [5], 3.0, continues=False)
    add_turn(episode, [], [6], 4.0)
    rows = EpisodeRows.of(episode, "episode").rows
    assert [(row.ids.tolist(), row.logprobs) for row in rows] == [([1, 2, 3, 4], None), ([9, 5, 6], None)]
    assert [[turn[:3] for turn in row.turns] for row in rows] == [[(0, 1, 2), (1, 3, 4)], [(2, 1, 2), (3, 2, 3)]]


def test_encoded_rows():
    one = EpisodeRows.of(three_turns(), "episode")
    assert pickle.loads(pickle.dumps(one)) == one
    answer = response("p", "l", one)
    assert (answer["reward"], answer["scores"], answer["truncated"]) == (1.5, 1.0, True)
    nothing = response("p", "l", EpisodeRows.of(None, "episode"))
    assert (nothing["reward"], nothing["scores"], nothing["truncated"]) == (0.0, 0.0, False)
    assert EpisodeRows.of(None, "turn") == EpisodeRows()
    assert not EpisodeRows().rows


def test_an_episode_without_turns():
    one = EpisodeRows.of(an_episode(), "episode")
    assert list(one.rows) == rewards_of(one) == []
    assert one.summary is not None
