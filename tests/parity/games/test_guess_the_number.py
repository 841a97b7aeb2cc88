"""GuessTheNumber beside upstream's, with the same number."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from scribbles import DIGITS, scribbles
from side_by_side import MALFORMED, play, seeds

from gem_games._game import boxed
from gem_games.guess_the_number import GuessTheNumber

upstream = pytest.importorskip("gem.envs.game_env.guess_the_number")

EASY = {"min_number": 1, "max_number": 10, "max_turns": 4}
HARD = {"min_number": 1, "max_number": 50, "max_turns": 7}
RANDOM = {"min_number": None, "max_number": None, "max_turns": None}
LIMITS = pytest.mark.parametrize("limits", [EASY, HARD, RANDOM, {**HARD, "max_turns": 50}], ids=str)


def pair(seed: int, limits: dict[str, Any]) -> tuple[GuessTheNumber, Any]:
    """Both games, with the same range, limit and number."""
    ours = GuessTheNumber(**limits)
    ours.reset(seed=seed)
    theirs = upstream.GuessTheNumberEnv(ours.min_number, ours.max_number, ours.max_turns)
    theirs.game_number = ours.target
    return ours, theirs


def guesses(player: random.Random, env: GuessTheNumber) -> Iterator[str]:
    """Guesses in and around the range, the right one and earlier ones among them."""
    made = [env.min_number]
    while True:
        kind = player.random()
        if kind < 0.05:
            made.append(env.target)
        elif kind < 0.9:
            made.append(player.randint(max(0, env.min_number - 2), env.max_number + 2) or 1)
        yield f"{boxed(1)} or {boxed(player.choice(made[-3:]))}"


@LIMITS
def test_guesses_are_paid_and_end_alike(limits: dict[str, Any]) -> None:
    for seed, player in seeds(1500):
        ours, theirs = pair(seed, limits)
        assert play(ours, theirs, guesses(player, ours)) <= ours.max_turns


@LIMITS
@pytest.mark.parametrize("before", [0, 1, None])
def test_malformed_actions_end_alike(limits: dict[str, Any], before: int | None) -> None:
    for action in (*MALFORMED, boxed(0), boxed("5 "), boxed("5.")):
        for seed, _ in seeds(10):
            ours, theirs = pair(seed, limits)
            turns = ours.max_turns - 1 if before is None else before
            play(ours, theirs, [boxed(ours.max_number + 1)] * turns + [action])


def test_boxes_are_read_alike() -> None:
    for seed, player in seeds(10):
        for action in scribbles(player, DIGITS, [str(number) for number in range(1, 11)], 300):
            play(*pair(seed, EASY), [action])
