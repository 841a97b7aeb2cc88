"""Episodes as rows: every sampled id once, where it was sampled."""

from __future__ import annotations

import pickle

import msgspec
import pytest

from gem_core.rollout import Episode, StopReason, Turn
from gem_openrlhf.rows import Played, Row, played, response


def turn(prompt: list[int], ids: list[int], reward: float, logprobs: list[float] | None = None) -> Turn:
    return Turn("", prompt, ids, logprobs, "", "", reward < 0, reward)


def episode(*turns: Turn) -> Episode:
    return Episode("test:Babble-v0", 7, group=5, turns=[*turns], stop_reason=StopReason.TERMINATED, success=True)


THREE = episode(
    turn([1, 2], [3, 4], 0.5, [-0.1, -0.2]),
    turn([1, 2, 3, 4, 5, 6], [7], -1.0, [-0.3]),  # glue of two tokens, a response of one
    turn([1, 2, 3, 4, 5, 6, 7], [8, 9, 10], 2.0, [-0.4, -0.5, -0.6]),  # no glue at all
)


def test_an_episode_is_one_row():
    one = played(THREE, "episode")
    assert one.rewards == [0.5, -1.0, 2.0]
    assert one.truncated == [False, True, False]
    (row,) = one.rows
    assert row.ids == [*range(1, 11)]
    assert row.logprobs == pytest.approx([0.0, 0.0, -0.1, -0.2, 0.0, 0.0, -0.3, -0.4, -0.5, -0.6])
    assert row.spans == [(0, 2, 4), (1, 6, 7), (2, 7, 10)]


def test_a_turn_is_a_row():
    rows = played(THREE, "turn").rows
    assert [row.ids for row in rows] == [one.prompt_ids + one.response_ids for one in THREE.turns]
    assert [row.spans for row in rows] == [[(0, 2, 4)], [(1, 6, 7)], [(2, 7, 10)]]


def test_a_broken_prefix_begins_another_row():
    rows = played(
        episode(turn([1], [2], 1.0), turn([1, 2, 3], [4], 2.0), turn([9], [5], 3.0), turn([9, 5], [6], 4.0)), "episode"
    ).rows
    assert rows == [
        Row([1, 2, 3, 4], None, rows[0].spans),
        Row([9, 5, 6], None, rows[1].spans),
    ]
    assert [row.spans for row in rows] == [[(0, 1, 2), (1, 3, 4)], [(2, 1, 2), (3, 2, 3)]]


def test_what_travels():
    one = played(THREE, "episode")
    assert pickle.loads(pickle.dumps(one)) == one
    answer = response("p", "l", one)
    assert (answer["reward"], answer["scores"], answer["truncated"]) == (1.5, 1.0, True)
    nothing = response("p", "l", played(None, "episode"))
    assert (nothing["reward"], nothing["scores"], nothing["truncated"]) == (0.0, 0.0, False)
    assert played(None, "turn") == Played()
    assert msgspec.structs.asdict(Played())["rows"] == []


def test_an_episode_without_turns():
    one = played(episode(), "episode")
    assert one.rows == one.rewards == []
    assert one.episode is not None
