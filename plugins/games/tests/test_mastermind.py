"""Mastermind, played: pegs, rewards, endings and parameters."""

from __future__ import annotations

import itertools
import operator
import re
from collections import Counter
from typing import Any

import pytest

from gem_core.env import StepResult
from gem_core.errors import EnvError
from gem_games.mastermind import Mastermind

EASY = {"code_length": 2, "num_numbers": 6, "max_turns": 10}
HARD = {"code_length": 4, "num_numbers": 8, "max_turns": 30}
RANDOM = {"code_length": None, "num_numbers": None, "max_turns": None}


def start(code: tuple[int, ...], **kwargs: Any) -> Mastermind:
    """A game with this code."""
    env = Mastermind(**{"code_length": len(code), "num_numbers": 8, "max_turns": 10, **kwargs})
    env.reset(seed=0)
    env.code = code
    return env


def guess(env: Mastermind, *numbers: int) -> StepResult:
    return env.step(f"I try \\boxed{{{' '.join(map(str, numbers))}}}.")


def pegs(observation: str) -> tuple[int, int]:
    """Black and white pegs of an answer, as a player reads them."""
    told = re.search(r"(\d+) black, (\d+) white", observation)
    assert told, observation
    return int(told[1]), int(told[2])


def count(code: tuple[int, ...], tried: tuple[int, ...]) -> tuple[int, int]:
    """Black and white pegs by their definition."""
    black = sum(map(operator.eq, code, tried))
    return black, (Counter(code) & Counter(tried)).total() - black


# -- parameters --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [EASY, HARD], ids=["easy", "hard"])
def test_codes_are_of_the_size_told_and_repeat_no_number(size: dict[str, int]) -> None:
    env = Mastermind(**size)
    seen: set[int] = set()
    for seed in range(100):
        rules, info = env.reset(seed=seed)
        assert [int(n) for n in re.findall(r"\d+", rules)][:4] == [size["code_length"], 1, *[*size.values()][1:]]
        assert info == {}
        assert len(set(env.code)) == len(env.code) == size["code_length"]
        seen.update(env.code)
    assert seen == set(range(1, size["num_numbers"] + 1))


def test_codes_may_repeat_numbers_where_asked() -> None:
    env = Mastermind(**HARD, duplicate_numbers=True)
    codes = [(env.reset(seed=seed), env.code)[1] for seed in range(100)]
    assert any(len(set(code)) < 4 for code in codes)
    assert any(len(set(code)) == 4 for code in codes)


def test_the_random_variant_draws_one_of_three_sizes_for_each_episode() -> None:
    env = Mastermind(**RANDOM)
    sizes = set()
    for seed in range(60):
        env.reset(seed=seed)
        sizes.add((len(env.code), env.num_numbers, env.max_turns))
    assert sizes == {(2, 4, 10), (4, 6, 20), (4, 8, 30)}


@pytest.mark.parametrize(
    "size",
    [
        {"code_length": None},
        {"num_numbers": None, "max_turns": None},
        {"code_length": 0},
        {"code_length": 7},
        {"max_turns": 0},
        {"num_numbers": 0, "duplicate_numbers": True},
    ],
    ids=str,
)
def test_sizes_that_make_no_game_are_refused(size: dict[str, Any]) -> None:
    with pytest.raises(EnvError):
        Mastermind(**{"code_length": 4, "num_numbers": 6, "max_turns": 20, **size})


# -- pegs and rewards --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "tried", "black", "white"),
    [
        ((1, 2, 3, 4), (5, 6, 7, 8), 0, 0),
        ((1, 2, 3, 4), (4, 3, 2, 1), 0, 4),
        ((1, 2, 3, 4), (1, 3, 2, 5), 1, 2),
        ((1, 2, 3, 4), (1, 1, 1, 1), 1, 0),
        ((1, 2, 3, 4), (2, 1, 1, 2), 0, 2),
        ((1, 1, 2, 2), (1, 2, 1, 1), 1, 2),
        ((5, 5, 5, 1), (1, 5, 1, 5), 1, 2),
    ],
)
def test_each_number_of_the_code_earns_one_peg_at_most(
    code: tuple[int, ...], tried: tuple[int, ...], black: int, white: int
) -> None:
    observation, reward, *_ = guess(start(code, duplicate_numbers=True), *tried)
    assert pegs(observation) == (black, white)
    assert reward == black / 4


def test_only_more_black_pegs_than_ever_before_are_paid() -> None:
    env = start((1, 2, 3, 4))
    played = [(5, 6, 7, 8), (1, 5, 6, 7), (5, 2, 6, 7), (1, 2, 5, 3), (5, 6, 7, 4), (1, 2, 3, 4)]
    answers = [guess(env, *numbers) for numbers in played]
    assert [answer[1] for answer in answers] == [0.0, 0.25, 0.0, 0.25, 0.0, 0.5]
    assert [answer[2:4] for answer in answers] == [(False, False)] * 5 + [(True, False)]
    assert [answer[4]["success"] for answer in answers] == [False] * 5 + [True]


def test_believing_the_pegs_finds_the_code() -> None:
    env = Mastermind(**HARD)
    for seed in range(5):
        env.reset(seed=seed)
        left = [*itertools.permutations(range(1, 9), 4)]
        total, terminated, info = 0.0, False, {}
        while not terminated:
            tried = left[0]
            observation, reward, terminated, _, info = guess(env, *tried)
            total += reward
            if not terminated:
                told = pegs(observation)
                left = [code for code in left if code != tried and count(code, tried) == told]
        assert info["success"]
        assert total == pytest.approx(1.0)


# -- guesses that do not count -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "numbers", [(1, 2, 3), (1, 2, 3, 4, 5), (1, 2, 3, 9), (0, 1, 2, 3), (1, 2, 3, 10**30)], ids=str
)
def test_a_guess_that_cannot_be_costs_the_turn_and_nothing_else(numbers: tuple[int, ...]) -> None:
    env = start((1, 2, 3, 4), max_turns=2)
    for last in (False, True):
        observation, *rest = guess(env, *numbers)
        assert "black" not in observation
        assert rest == [0.0, last, last, {"success": False, "invalid_action": True}]


def test_a_repeated_guess_costs_the_turn_and_nothing_else() -> None:
    env = start((1, 2, 3, 4))
    assert guess(env, 1, 2, 4, 3)[1] == 0.5
    observation, *rest = env.step("\\boxed{1\t02  4\n3}")
    assert "black" not in observation
    assert rest == [0.0, False, False, {"success": False, "invalid_action": True}]


@pytest.mark.parametrize(
    "action",
    [
        "",
        "1 2 3 4",
        "\\boxed{}",
        "\\boxed{1,2,3,4}",
        "\\boxed{1 2 3 4 }",
        "\\boxed{ 1 2 3 4}",
        "\\boxed{-1 2 3 4}",
        "\\boxed{1 2 3 " + "4" * 5000 + "}",
    ],
    ids=lambda action: action[:18] or "empty",
)
@pytest.mark.parametrize("turn", [1, 2])
def test_without_numbers_in_a_box_the_episode_ends(action: str, turn: int) -> None:
    env = start((1, 2, 3, 4), max_turns=2)
    for _ in range(turn - 1):
        guess(env, 5, 6, 7, 8)
    assert env.step(action)[1:] == (-0.1, True, turn == 2, {"success": False, "invalid_action": True})


def test_the_last_box_with_numbers_counts() -> None:
    env = start((1, 2, 3, 4))
    assert env.step("\\boxed{1 2 3 4} or \\boxed{4 3 2 1}")[1:3] == (0.0, False)
    assert env.step("\\boxed{4 3 1 2} no, \\boxed{1 2 3 4} \\boxed{done}")[1:3] == (1.0, True)


# -- endings -----------------------------------------------------------------------------------------------------------


def test_the_last_turn_tells_the_code_and_pays_its_pegs() -> None:
    env = start((1, 2, 3, 4), max_turns=2)
    guess(env, 5, 6, 7, 8)
    observation, *rest = guess(env, 1, 2, 4, 3)
    assert rest == [0.5, True, True, {"success": False}]
    assert "1 2 3 4" in observation


def test_the_code_on_the_last_turn_is_a_win_and_no_truncation() -> None:
    assert guess(start((1, 2, 3, 4), max_turns=1), 1, 2, 3, 4)[1:] == (1.0, True, False, {"success": True})


def test_a_new_episode_forgets_guesses_and_pegs() -> None:
    env = start((1, 2, 3, 4))
    guess(env, 1, 2, 4, 3)
    env.reset(seed=0)
    env.code = (1, 2, 3, 4)
    assert guess(env, 1, 2, 4, 3)[1:] == (0.5, False, False, {"success": False})


# -- random play -------------------------------------------------------------------------------------------------------


def test_random_play_tries_every_possible_code_once() -> None:
    env = Mastermind(code_length=2, num_numbers=4, max_turns=100)
    for seed in range(50):
        env.reset(seed=seed)
        actions, info = [], {"success": False}
        while not info["success"]:
            actions.append(env.sample_random_action())
            info = env.step(actions[-1])[4]
            assert "invalid_action" not in info
        assert len(set(actions)) == len(actions) <= 12


def test_the_example_in_the_rules_is_a_guess() -> None:
    env = Mastermind(**HARD)
    for seed in range(20):
        assert "invalid_action" not in env.step(env.reset(seed=seed)[0])[4]
