"""Guess the number, played: rewards, endings, hints and the parameters of every id."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

import gem_core
from gem_core.env import Env, StepResult
from gem_core.errors import EnvError, EnvKwargsError

SEEDS = range(25)
# Lowest and highest number, turns: upstream GEM's table, and the two ids of its paper that it dropped later.
LIMITS = {
    "game:GuessTheNumber-v0": (1, 20, 10),
    "game:GuessTheNumber-v0-easy": (1, 10, 4),
    "game:GuessTheNumber-v0-hard": (1, 50, 7),
    "game:GuessTheNumber-v0-hard-no-max-turn": (1, 50, 50),
}
RANDOM = "game:GuessTheNumber-v0-random"
EASY = "game:GuessTheNumber-v0-easy"
HARD = "game:GuessTheNumber-v0-hard"


def guess(env: Env, number: object) -> StepResult:
    return env.step(f"I say \\boxed{{{number}}}.")


def limits_told(rules: str) -> tuple[int, int, int]:
    """Lowest and highest number and turns, as a player reads them; the wording is the game's own."""
    low, high, turns, *_ = map(int, re.findall(r"\d+", rules))
    return low, high, turns


def search(env: Env, low: int, high: int) -> tuple[int, list[StepResult]]:
    """Halve the range until it is found, believing the hints; returns the number and what was answered."""
    answers: list[StepResult] = []
    while True:
        middle = (low + high) // 2
        answers.append(guess(env, middle))
        observation, reward, terminated, _, _ = answers[-1]
        if terminated:
            assert reward == 1.0, observation
            return middle, answers
        low, high = (middle + 1, high) if "higher" in observation else (low, middle - 1)
        assert low <= high, "the hints contradict each other"


def secret(env_id: str, seed: int, **kwargs: Any) -> int:
    """The number of an episode, found by playing it with turns to spare."""
    env = gem_core.make(env_id, **{**kwargs, "max_turns": 1000})
    low, high, _ = limits_told(env.reset(seed=seed)[0])
    return search(env, low, high)[0]


def others(number: int, low: int, high: int) -> list[int]:
    """The wrong guesses of a range, in order."""
    return [other for other in range(low, high + 1) if other != number]


# -- parameters --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env_id", LIMITS)
def test_the_rules_tell_the_limits_of_the_id(env_id: str) -> None:
    observation, info = gem_core.make(env_id).reset(seed=0)
    assert limits_told(observation) == LIMITS[env_id]
    assert not info.get("invalid_action")


@pytest.mark.parametrize("env_id", LIMITS)
def test_numbers_come_from_the_whole_range_and_nowhere_else(env_id: str) -> None:
    low, high, _ = LIMITS[env_id]
    numbers = {secret(env_id, seed) for seed in range(12 * (high - low + 1))}
    assert numbers == set(range(low, high + 1))


@pytest.mark.parametrize("env_id", LIMITS)
def test_the_last_turn_is_the_one_the_rules_name(env_id: str) -> None:
    low, high, turns = LIMITS[env_id]
    env = gem_core.make(env_id)
    for seed in SEEDS:
        env.reset(seed=seed)
        wrong = others(secret(env_id, seed), low, high)
        answers = [guess(env, wrong[turn % len(wrong)]) for turn in range(turns)]
        assert [answer[2:4] for answer in answers] == [(False, False)] * (turns - 1) + [(True, True)]


def test_the_random_variant_draws_its_limits_for_each_episode() -> None:
    env = gem_core.make(RANDOM)
    seen = [limits_told(env.reset(seed=seed)[0]) for seed in range(300)]
    assert len(set(seen)) > 100
    assert {low for low, _, _ in seen} == set(range(1, 11))
    assert {high - low for low, high, _ in seen} >= {5, 50}
    for low, high, turns in seen:
        assert 5 <= high - low <= 50
        assert turns == math.ceil(math.sqrt(high - low)) + 1
    assert [limits_told(env.reset(seed=seed)[0]) for seed in range(300)] == seen


def test_the_random_variant_goes_on_drawing_without_a_seed() -> None:
    env = gem_core.make(RANDOM)
    env.reset(seed=1)
    assert len({limits_told(env.reset()[0]) for _ in range(20)}) > 10


def test_the_random_variant_is_played_by_the_rules_it_tells() -> None:
    env = gem_core.make(RANDOM)
    for seed in SEEDS:
        _, high, turns = limits_told(env.reset(seed=seed)[0])
        for turn in range(1, turns + 1):
            observation, _, terminated, truncated, _ = guess(env, high + 1)  # out of range: never right
            assert terminated is truncated is (turn == turns), observation


@pytest.mark.parametrize(
    "limits",
    [
        {"min_number": None},
        {"max_number": None, "max_turns": None},
        {"min_number": 5, "max_number": 5},
        {"min_number": 0, "max_number": 5},
        {"max_turns": 0},
    ],
    ids=str,
)
def test_limits_that_make_no_game_are_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(EnvError):
        gem_core.make(EASY, **limits)


# -- hints and the right number ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("env_id", LIMITS)
def test_halving_the_range_always_wins(env_id: str) -> None:
    env = gem_core.make(env_id)
    for seed in SEEDS:
        low, high, turns = limits_told(env.reset(seed=seed)[0])
        _, answers = search(env, low, high)
        *before, last = answers
        assert len(answers) <= min(turns, math.ceil(math.log2(high - low + 2)))
        assert all(answer[1:4] == (0.0, False, False) for answer in before)
        assert all(answer[4] == {"success": False} for answer in before)
        assert last[1:] == (1.0, True, False, {"success": True})


def test_the_right_number_on_the_last_turn_is_a_win_and_no_truncation() -> None:
    env = gem_core.make(EASY)
    env.reset(seed=3)
    number = secret(EASY, 3)
    for wrong in others(number, 1, 10)[:3]:
        guess(env, wrong)
    assert guess(env, number)[1:] == (1.0, True, False, {"success": True})


def test_hints_point_to_the_number() -> None:
    for seed in SEEDS:
        number = secret(EASY, seed)
        for wrong in others(number, 1, 10):
            env = gem_core.make(EASY)
            env.reset(seed=seed)
            hint = guess(env, wrong)[0]
            assert ("higher" in hint, "lower" in hint) == (number > wrong, number < wrong)


def test_no_answer_tells_the_number_while_it_can_still_be_found() -> None:
    for seed in SEEDS:
        number = secret(HARD, seed)
        env = gem_core.make(HARD)
        env.reset(seed=seed)
        for wrong in others(number, 1, 50)[:6]:
            assert str(number) not in re.findall(r"\d+", guess(env, wrong)[0])


# -- guesses that do not count -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("far", [11, 99, 10**30])
def test_out_of_range_costs_the_turn_and_nothing_else(far: int) -> None:
    env = gem_core.make(EASY)
    env.reset(seed=0)
    observation, *rest = guess(env, far)
    assert rest == [0.0, False, False, {"success": False, "invalid_action": True}]
    assert "higher" not in observation
    assert "lower" not in observation
    answers = [guess(env, far) for _ in range(3)]
    assert answers[-1][1:4] == (0.0, True, True), "no consolation for a number that cannot be"
    assert answers[-1][4]["success"] is False


def test_a_repeated_guess_costs_the_turn_and_nothing_else() -> None:
    env = gem_core.make(EASY)
    env.reset(seed=0)
    wrong, other, _, *_ = others(secret(EASY, 0), 1, 10)
    assert guess(env, wrong)[4] == {"success": False}
    for _ in range(2):
        assert guess(env, wrong)[1:] == (0.0, False, False, {"success": False, "invalid_action": True})
    assert guess(env, other)[2:4] == (True, True), "the repeated guesses had spent their turns"


def test_a_guess_of_the_last_episode_is_no_repetition() -> None:
    env = gem_core.make(EASY)
    wrong = others(secret(EASY, 0), 1, 10)[0]
    for _ in range(2):
        env.reset(seed=0)
        assert "invalid_action" not in guess(env, wrong)[4]


# -- the last turn -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("env_id", "span"), [(EASY, 9), (HARD, 49)])
def test_a_miss_on_the_last_turn_is_paid_by_its_distance(env_id: str, span: int) -> None:
    low, high, turns = LIMITS[env_id]
    for seed in range(5):
        number = secret(env_id, seed)
        for last in others(number, low, high):
            env = gem_core.make(env_id)
            env.reset(seed=seed)
            for _ in range(turns - 1):
                guess(env, high + 1)
            _, reward, terminated, truncated, info = guess(env, last)
            assert reward == pytest.approx(1 - abs(last - number) / span)
            assert (terminated, truncated, info["success"]) == (True, True, False)


def test_the_farthest_miss_is_paid_nothing() -> None:
    seed = next(seed for seed in range(1000) if secret(EASY, seed) == 10)
    env = gem_core.make(EASY, max_turns=1)
    env.reset(seed=seed)
    assert guess(env, 1)[1] == 0.0


def test_a_repeated_guess_on_the_last_turn_is_paid_by_its_distance_too() -> None:
    number = secret(EASY, 0)
    wrong = next(other for other in others(number, 1, 10) if abs(other - number) == 1)
    env = gem_core.make(EASY)
    env.reset(seed=0)
    for _ in range(3):
        guess(env, wrong)
    _, reward, *rest = guess(env, wrong)
    assert reward == pytest.approx(1 - 1 / 9)
    assert rest == [True, True, {"success": False, "invalid_action": True}]


# -- the action format -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "action",
    [
        "",
        "7",
        "boxed{7}",
        "\\boxed{}",
        "\\boxed{seven}",
        "\\boxed{-7}",
        "\\boxed{7.0}",
        "\\boxed{ 7 }",
        "\\boxed{7",
        "\\boxed {7}",
        "\\boxed{0}",
        "\\boxed{000}",
        "\\boxed{" + "7" * 5000 + "}",
    ],
    ids=lambda action: action[:12] or "empty",
)
@pytest.mark.parametrize("turn", [1, 2, 4])
def test_without_a_number_in_a_box_the_episode_ends(action: str, turn: int) -> None:
    """At -0.1, also for zero; truncated too where the last turn was spent on it."""
    env = gem_core.make(EASY)
    env.reset(seed=0)
    for wrong in others(secret(EASY, 0), 1, 10)[: turn - 1]:
        guess(env, wrong)
    assert env.step(action)[1:] == (-0.1, True, turn == 4, {"success": False, "invalid_action": True})


def test_the_last_box_counts() -> None:
    number = secret(EASY, 0)
    wrong = others(number, 1, 10)[0]
    env = gem_core.make(EASY)
    env.reset(seed=0)
    assert env.step(f"\\boxed{{{number}}}, no, \\boxed{{{wrong}}}")[1:3] == (0.0, False)
    assert env.step(f"\\boxed{{{wrong}}}\n\\boxed{{{number}}} and \\boxed{{no number}}")[1:3] == (1.0, True)


def test_a_zero_in_the_last_box_counts_too() -> None:
    env = gem_core.make(EASY)
    env.reset(seed=0)
    assert env.step("\\boxed{5} \\boxed{0}")[1:3] == (-0.1, True)


def test_leading_zeros_and_text_around_the_box_do_not_matter() -> None:
    env = gem_core.make(EASY)
    env.reset(seed=0)
    assert env.step(f"<think>\\boxed{{}}</think> so \\boxed{{00{secret(EASY, 0)}}}!")[1] == 1.0


def test_the_example_in_the_rules_is_an_action() -> None:
    env = gem_core.make(HARD)
    for seed in SEEDS:
        rules, _ = env.reset(seed=seed)
        assert env.step(rules)[1] >= 0.0
        assert not env.step(rules)[4]["success"]


# -- random play -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("env_id", [*LIMITS, RANDOM])
def test_random_play_never_repeats_itself_and_finds_the_number_in_time(env_id: str) -> None:
    env = gem_core.make(env_id)
    for seed in SEEDS:
        low, high, turns = limits_told(env.reset(seed=seed)[0])
        actions: list[str] = []
        terminated, info = False, {}
        while not terminated:
            actions.append(env.sample_random_action())
            _, _, terminated, _, info = env.step(actions[-1])
        assert len(set(actions)) == len(actions) <= min(turns, high - low + 1)
        assert info["success"] or len(actions) == turns


def test_render_shows_the_game_to_a_person() -> None:
    env = gem_core.make(EASY)
    env.reset(seed=0)
    wrong = others(secret(EASY, 0), 1, 10)[0]
    guess(env, wrong)
    shown = env.render()
    assert shown is not None
    assert {"1", "10", str(wrong), "4"} <= set(re.findall(r"\d+", shown))


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"max_turns": 2.5}, r"max_turns=2.5 is of the wrong type; give int"),
        ({"max_turns": "3"}, r"max_turns='3' is of the wrong type"),
        ({"max_turns": True}, r"max_turns=True is of the wrong type"),
    ],
)
def test_plain_values_of_the_wrong_type_are_refused(kwargs: dict[str, Any], message: str) -> None:
    with pytest.raises(EnvKwargsError, match=message):
        gem_core.make(EASY, **kwargs)
