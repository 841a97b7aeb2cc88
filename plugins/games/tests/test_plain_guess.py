"""The number game in plain words, played: rewards, ends, hints, and the numbers of both splits."""

from __future__ import annotations

import re

import pytest

import gem_core
from gem_core.env import Env
from gem_core.errors import EnvError

TRAIN, TEST = "game:PlainGuess-v0", "game:PlainGuess-v0-test"
SEEDS = range(200)


def given(env: Env, seed: int) -> int:
    """The number that the first observation tells."""
    return int(re.findall(r"[0-9]+", env.reset(seed=seed)[0])[0])


def played(env: Env, seed: int, follow_hints: bool) -> float:
    """The return of one who begins with the number told and goes up or down by one."""
    guess, step = given(env, seed), 1
    while True:
        observation, reward, terminated, _, info = env.step(f"I guess {guess}.")
        if terminated:
            assert info["success"] is (reward == 1.0)
            return reward
        if follow_hints:
            step = {"Higher.": 1, "Lower.": -1}[observation]
        guess += step


@pytest.mark.parametrize("env_id", [TRAIN, TEST])
def test_who_follows_the_hints_always_wins(env_id: str):
    env = gem_core.make(env_id)
    assert all(played(env, seed, follow_hints=True) == 1.0 for seed in SEEDS)


def test_who_does_not_wins_three_of_five():
    env = gem_core.make(TRAIN)
    won = sum(played(env, seed, follow_hints=False) for seed in range(500))
    assert 250 <= won <= 350, "300 of 500 on average, with a standard deviation of 11"


def test_no_number_of_the_test_is_trained_on():
    games = {env_id: gem_core.make(env_id) for env_id in (TRAIN, TEST)}
    decades = {env_id: {given(game, seed) // 10 for seed in SEEDS} for env_id, game in games.items()}
    assert decades == {TRAIN: {1, 2, 4, 5, 7, 8}, TEST: {3, 6, 9}}
    assert all(2 <= given(games[TRAIN], seed) % 10 <= 7 for seed in SEEDS), "the number to be found has the same tens"


@pytest.mark.parametrize("action", ["", "no idea", "0", "-", "1000", "9" * 5000, "٣", "half"])
def test_what_cannot_be_right_ends_the_episode(action: str):
    env = gem_core.make(TRAIN)
    env.reset(seed=0)
    _, reward, terminated, truncated, info = env.step(action)
    assert (reward, terminated, truncated) == (-0.1, True, False)
    assert info["invalid_action"] is True
    assert info["success"] is False


@pytest.mark.parametrize(("away", "goes_on"), [(-3, False), (-2, True), (2, True), (3, False)])
def test_a_guess_is_at_most_two_away(away: int, goes_on: bool):
    env = gem_core.make(TRAIN)
    near = given(env, 3)
    _, reward, terminated, _, info = env.step(str(near + away))
    if goes_on:
        assert reward in (0.0, 1.0)
        assert "invalid_action" not in info
    else:
        assert (reward, terminated) == (-0.1, True)


def test_the_last_number_is_the_guess():
    first, second = gem_core.make(TRAIN), gem_core.make(TRAIN)
    near = given(first, 3)
    given(second, 3)
    assert first.step(f"Not {near + 50}, but {near - 2}.") == second.step(str(near - 2))


def test_three_wrong_guesses_end_it_and_tell_the_number():
    env = gem_core.make(TRAIN)
    seed = next(seed for seed in SEEDS if given(env, seed) and env.step(str(given(env, seed) - 2))[1] == 0.0)
    near = given(env, seed)
    for turn in range(3):
        observation, reward, terminated, truncated, info = env.step(str(near - 2))
        assert (reward, terminated, truncated) == (0.0, turn == 2, turn == 2)
    assert re.fullmatch(r"No, it was [0-9]+\.", observation)
    assert info["success"] is False


@pytest.mark.parametrize("kwargs", [{"max_turns": 0}, {"split": "dev"}])
def test_other_arguments_are_refused(kwargs: dict[str, object]):
    with pytest.raises(EnvError, match="max_turns >= 1, and 'train' or 'test'"):
        gem_core.make(TRAIN, **kwargs)
