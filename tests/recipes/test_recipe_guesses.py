"""The measures of a number that is guessed, on games that are really played."""

from __future__ import annotations

import pytest

from gem_core import make
from gem_core.episode import Episode, StopReason, Turn
from recipes.gamma.bounds import POSSIBLE, Bounds, SomePossible
from recipes.measures import FAILED_GUESSES, guesses


def played(answers, seed: int = 3, max_turns: int = 50) -> Episode:
    """A game; `answers` gives an action for the bounds that are shown."""
    env = Bounds(make("game:GuessTheNumber-v1-hard", max_turns=max_turns))
    observation, _ = env.reset(seed=seed)
    turns: list[Turn] = []
    done, info = False, {}
    while not done:
        action = answers(observation)
        shown, reward, terminated, truncated, info = env.step(action)
        turns.append(Turn(0, 0, 0, observation, action, action, False, reward, info))
        observation, done = shown, terminated or truncated
    return Episode(
        env_id="", seed=seed, turns=turns, success=bool(info.get("success")), stop_reason=StopReason.TERMINATED
    )


def middle(observation: str) -> str:
    low, high = map(int, observation.split())
    return f"\\boxed{{{(low + high) // 2:02d}}}"


def test_bisection_needs_the_optimum_on_average() -> None:
    counts: dict[int, float] = {}
    for seed in range(300):
        env = make("game:GuessTheNumber-v1-hard")
        env.reset(seed=seed)
        numbers = guesses(played(middle, seed))
        counts[env.unwrapped.target] = numbers["guesses/all"]
        assert numbers["guesses/possible"] == 1
        assert numbers["guesses/from_middle"] == 0
        assert numbers["guesses/format_errors"] == 0
    assert len(counts) == 50
    assert sum(counts.values()) / 50 == pytest.approx(243 / 50)


def test_a_failure_counts_fifty_and_a_format_error_apart() -> None:
    assert guesses(played(lambda _: r"\boxed{51}", max_turns=4)) == {
        "guesses/format_errors": 0.0,
        "guesses/all": FAILED_GUESSES,
        "guesses/possible": 0.0,
    }
    assert guesses(played(lambda _: "nothing")) == {"guesses/format_errors": 1.0}


def test_guesses_at_the_edge_are_far_from_the_middle() -> None:
    numbers = guesses(played(lambda observation: f"\\boxed{{{int(observation.split()[0])}}}", seed=8))
    assert numbers["guesses/possible"] == 1
    assert numbers["guesses/from_middle"] > 0.9


def test_a_third_of_random_guesses_is_possible_and_these_are_not_the_middle() -> None:
    env = SomePossible(make("game:GuessTheNumber-v1-hard", max_turns=3))
    possible: list[float] = []
    middles: list[bool] = []
    for seed in range(400):
        observation, _ = env.reset(seed=seed)
        for _ in range(2):  # in the first turn, every number is possible
            low, high = map(int, observation.split())
            action = env.sample_random_action()
            guess = int(action.removeprefix("\\boxed{").removesuffix("}"))
            if high - low < 49:
                # Of blind guesses, a share is possible by chance.
                possible.append((low <= guess <= high) - (1 - POSSIBLE) * (high - low + 1) / 50)
                middles.append(abs(2 * guess - low - high) <= 1)
            observation, _, terminated, *_ = env.step(action)
            if terminated:
                break
    assert len(possible) > 300
    assert sum(possible) / len(possible) == pytest.approx(POSSIBLE, abs=0.1)
    assert sum(middles) / len(middles) < 0.15
