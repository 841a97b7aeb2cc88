"""The number game in plain words, played: rewards, ends, hints, and the ranges of both splits."""

from __future__ import annotations

import re

import pytest

import gem_core
from gem_core.env import Env
from gem_core.errors import EnvError

TRAIN, TEST = "game:PlainGuess-v0", "game:PlainGuess-v0-test"
SEEDS = range(200)


def started(env: Env, seed: int) -> tuple[int, int]:
    """The range that the first observation tells."""
    low, high = map(int, re.findall(r"\d+", env.reset(seed=seed)[0]))
    return low, high


def halved(env: Env, seed: int) -> float:
    """The return of one who always guesses the middle of what the hints leave."""
    low, high = started(env, seed)
    while True:
        middle = (low + high) // 2
        observation, reward, terminated, _, info = env.step(f"I guess {middle}.")
        if terminated:
            assert info["success"] is (reward == 1.0)
            return reward
        low, high = (middle + 1, high) if observation == "Higher." else (low, middle - 1)


@pytest.mark.parametrize("env_id", [TRAIN, TEST])
def test_halving_always_wins(env_id: str):
    env = gem_core.make(env_id)
    assert all(halved(env, seed) == 1.0 for seed in SEEDS)


def test_two_guesses_find_three_of_seven():
    env = gem_core.make(TRAIN, max_turns=2)
    won = sum(halved(env, seed) for seed in range(700))
    assert 250 <= won <= 350, "300 of 700 on average, with a standard deviation of 13"


def test_no_range_of_the_test_is_trained_on():
    games = {env_id: gem_core.make(env_id) for env_id in (TRAIN, TEST)}
    lows = {env_id: {started(game, seed)[0] for seed in SEEDS} for env_id, game in games.items()}
    assert lows == {TRAIN: {11, 21, 41, 51, 71, 81}, TEST: {31, 61, 91}}


@pytest.mark.parametrize("action", ["", "no idea", "0", "-", "1000", "9" * 5000, "٣", "half"])
def test_what_is_no_number_in_range_ends_the_episode(action: str):
    env = gem_core.make(TRAIN)
    env.reset(seed=0)
    _, reward, terminated, truncated, info = env.step(action)
    assert (reward, terminated, truncated) == (-0.1, True, False)
    assert info["invalid_action"] is True
    assert info["success"] is False


def test_the_last_number_is_the_guess():
    env = gem_core.make(TRAIN)
    low, high = started(env, 3)
    hint = env.step(f"Not {high + 50}, but {low}.")[0]
    again = gem_core.make(TRAIN)
    started(again, 3)
    assert again.step(str(low))[0] == hint == "Higher."


def test_three_wrong_guesses_end_it_and_tell_the_number():
    env = gem_core.make(TRAIN)
    low, _ = started(env, 3)
    for turn in range(3):
        observation, reward, terminated, truncated, info = env.step(str(low))
        assert (reward, terminated, truncated) == (0.0, turn == 2, turn == 2)
    assert re.fullmatch(r"No, it was \d+\.", observation)
    assert info["success"] is False


@pytest.mark.parametrize("kwargs", [{"max_turns": 0}, {"split": "dev"}])
def test_other_arguments_are_refused(kwargs: dict[str, object]):
    with pytest.raises(EnvError, match="max_turns >= 1, and 'train' or 'test'"):
        gem_core.make(TRAIN, **kwargs)
