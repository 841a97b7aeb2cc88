"""Mastermind beside upstream's, with the same code."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any

import pytest
from scribbles import DIGITS, scribbles
from side_by_side import MALFORMED, play, seeds

from gem_games._game import boxed
from gem_games.mastermind import Mastermind

upstream = pytest.importorskip("gem.envs.game_env.mastermind")

EASY = {"code_length": 2, "num_numbers": 6, "max_turns": 10}
HARD = {"code_length": 4, "num_numbers": 8, "max_turns": 30}
RANDOM = {"code_length": None, "num_numbers": None, "max_turns": None}
SIZES = pytest.mark.parametrize("size", [EASY, HARD, RANDOM, {**HARD, "duplicate_numbers": True}], ids=str)


def pair(seed: int, size: dict[str, Any]) -> tuple[Mastermind, Any]:
    """Both games, with the same size and code."""
    ours = Mastermind(**size)
    ours.reset(seed=seed)
    drawn = {"code_length": ours.code_length, "num_numbers": ours.num_numbers, "max_turns": ours.max_turns}
    theirs = upstream.MastermindEnv(**drawn, duplicate_numbers=ours.duplicate_numbers)
    theirs.game_code = [*ours.code]
    return ours, theirs


def guesses(player: random.Random, env: Mastermind) -> Iterator[str]:
    """Guesses of all kinds, the right one among them."""
    made = [(1,)]
    while True:
        kind = player.random()
        length = env.code_length + (player.choice((-1, 1, 2)) if kind < 0.1 else 0)
        highest = env.num_numbers + (2 if kind > 0.9 else 0)
        made.append(tuple(player.choices(range(0 if kind > 0.9 else 1, highest + 1), k=length)))
        if 0.1 < kind < 0.2:
            made.append(player.choice(made))
        if 0.2 < kind < 0.4:  # near the code
            made.append(tuple(n if player.random() < 0.8 else player.randint(1, env.num_numbers) for n in env.code))
        yield f"or {boxed(' '.join(map(str, made[-1])))}."


@SIZES
def test_guesses_are_paid_and_end_alike(size: dict[str, Any]) -> None:
    turns = won = 0
    for seed, player in seeds(400):
        ours, theirs = pair(seed, size)
        turns += play(ours, theirs, guesses(player, ours))
        won += ours.most_black == ours.code_length
    assert turns > 1500
    assert 50 < won < 400


@SIZES
def test_pegs_are_the_same(size: dict[str, Any]) -> None:
    for seed, player in seeds(100):
        ours, theirs = pair(seed, size)
        for action in (next(guesses(player, ours)) for _ in range(ours.max_turns - 1)):
            answer, wanted = ours.step(action), theirs.step(action)
            pegs = [re.findall(r"(\d+) (?:black|white)", text[0]) for text in (answer, wanted)]
            assert pegs[0] == pegs[1]
            if answer[2]:
                break


@SIZES
@pytest.mark.parametrize("before", [0, 3, None], ids=["first", "fourth", "last"])
def test_malformed_actions_end_alike(size: dict[str, Any], before: int | None) -> None:
    for action in MALFORMED:
        ours, theirs = pair(0, size)
        wrong = boxed(" ".join(["99"] * ours.code_length))
        turns = ours.max_turns - 1 if before is None else before
        play(ours, theirs, [*[wrong] * turns, action])


@SIZES
def test_boxes_are_read_alike(size: dict[str, Any]) -> None:
    for seed, player in seeds(30):
        for action in scribbles(player, DIGITS, ["1 2", "2 3", "1 2 3 4", "4 3 2 1"], 40):
            play(*pair(seed, size), [action])
