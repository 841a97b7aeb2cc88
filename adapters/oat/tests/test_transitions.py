"""What Oat's actors send to its learners, and the rows that the learners make."""

from __future__ import annotations

import pickle

import msgspec
import pytest
from oat.algorithms.ppo import PPOArgs

from gem_core.episode import Episode, TokenSequence, Turn, as_logprobs, as_token_ids
from gem_oat._transitions import EpisodeData, batch_episodes, batch_items, pad_rows, turn_rows
from gem_train.rollout import Batch

RESPONSE = [7, 8, 9]


def played(turns: int, *, prompt: int = 2, new_sequence_at: int | None = None, task_id: int = 0) -> Episode:
    """An episode whose turn `i` has the reward `i` and a response of three tokens; every second one was cut off."""
    episode = Episode("test:A-v0", seed=1, task_id=task_id)
    for number in range(turns):
        ids = as_token_ids([number] * prompt)
        if number in (0, new_sequence_at):
            episode.sequences.append(TokenSequence.starting(ids))
        else:
            episode.sequences[-1].add_prompt(ids)
        sequence = episode.sequences[-1]
        start = len(sequence.ids)
        sequence.add_response(as_token_ids(RESPONSE), as_logprobs([-1.0, -2.0, -number]))
        at = len(episode.sequences) - 1
        episode.turns.append(Turn(at, start, start + 3, "", "", "", number % 2 == 1, float(number)))
    return episode


def items_of(episodes: list[Episode], count: int | None = None) -> list[EpisodeData]:
    """The items as a learner gets them."""
    items = batch_items(Batch(episodes, dropped=(count or len(episodes)) - len(episodes)), count or len(episodes))
    return pickle.loads(pickle.dumps(items))


def test_an_episode_is_sent_with_each_token_once():
    """Four bytes for an id and four for its log-probability, and less than 100 for a turn."""
    turns, tokens = 40, 40 * (200 + 3)
    size = len(pickle.dumps(items_of([played(turns, prompt=200)])))
    assert 8 * tokens < size < 8 * tokens + 100 * turns + 2000


def test_rows_are_the_turns_in_order():
    rows, table = turn_rows(
        items_of([played(2, task_id=5), played(0), played(3, new_sequence_at=2, task_id=6)]), PPOArgs()
    )
    assert [row.prompt_ids for row in rows] == [
        [0, 0],
        [0, 0, *RESPONSE, 1, 1],
        [0, 0],
        [0, 0, *RESPONSE, 1, 1],
        [2, 2],
    ]
    assert [row.response_ids for row in rows] == [RESPONSE] * 5
    assert [row.response_logprobs[2] for row in rows] == [0.0, -1.0, 0.0, -1.0, -2.0]
    assert [row.rewards for row in rows] == [[0.0], [1.0], [0.0], [1.0], [2.0]]
    assert table.task_id.tolist() == [5, 5, 6, 6, 6]
    assert table.episode.tolist() == [0, 0, 1, 1, 1]
    assert table.position.tolist() == [0, 1, 0, 1, 2]
    # Column 0 of Oat's tables is the second token.
    assert list(zip(table.start, table.end, strict=True)) == [(1, 4), (6, 9), (1, 4), (6, 9), (1, 4)]


def test_episodes_are_named_as_they_are_counted():
    episodes = [msgspec.structs.replace(played(turns), number=turns) for turns in (2, 0, 3)]
    items = items_of(episodes, 4)
    _, table = turn_rows(items, PPOArgs())
    names = batch_episodes(items)
    assert [names[number] for number in table.episode] == ["-0-2"] * 2 + ["-0-3"] * 3
    assert names[2:] == ["-0-0"], "without turns, but not the one that was dropped"


def test_dropped_episodes_have_no_summary_and_no_rows():
    items = items_of([played(2)], 3)
    assert [item.summary is None for item in items] == [False, True, True]
    assert [item.dropped for item in items] == [2, 0, 0]
    assert len(turn_rows(items, PPOArgs())[0]) == 2


@pytest.mark.parametrize(
    ("flags", "reward", "loss_mask"),
    [
        ({}, 1.0, True),
        ({"non_stop_penalty": -0.5}, 0.5, True),
        ({"non_stop_fixed_reward": -1.0}, -1.0, True),
        ({"non_stop_fixed_reward": -1.0, "non_stop_penalty": -0.5}, -1.5, True),
        ({"ignore_no_eos": True}, 1.0, False),
    ],
)
def test_oats_flags_for_responses_that_were_cut_off(flags: dict[str, float], reward: float, loss_mask: bool):
    (ended, cut_off), _ = turn_rows(items_of([played(2)]), PPOArgs(**flags))
    assert (ended.rewards, ended.loss_mask) == ([0.0], True)
    assert (cut_off.rewards, cut_off.loss_mask) == ([reward], loss_mask)


def test_padding_repeats_rows_and_the_loss_ignores_it():
    rows, _ = turn_rows(items_of([played(2)]), PPOArgs())
    padded = pad_rows(rows, 5, 0)
    assert padded[:2] == rows
    assert [(row.prompt_ids, row.loss_mask) for row in padded[2:]] == [
        ([0, 0], False),
        ([0, 0, *RESPONSE, 1, 1], False),
        ([0, 0], False),
    ]
    assert [(row.prompt_ids, row.response_ids, row.loss_mask) for row in pad_rows([], 2, 4)] == [([4], [4], False)] * 2
