"""Sudoku beside upstream's, with the same puzzle."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from scribbles import DIGITS, scribbles
from side_by_side import MALFORMED, play, seeds

from gem_games._game import boxed
from gem_games.sudoku import Sudoku

upstream = pytest.importorskip("gem.envs.game_env.sudoku")

EASY = {"scale": 4, "clues": 10, "max_turns": 15}
HARD = {"scale": 9, "clues": 50, "max_turns": 50}
SIZES = pytest.mark.parametrize(("size", "games"), [(EASY, 400), (HARD, 60), ({**EASY, "max_turns": 6}, 200)], ids=str)
FORMS = ("{} {} {}", "{}\t{}\n{}", "00{} {} 0{}", "{}\u2003{} {}", " {} {} {}", "{}  {} {}", "{},{},{}", "{} {} {} 1")


def pair(seed: int, size: dict[str, int]) -> tuple[Sudoku, Any]:
    """Both games, with the same puzzle."""
    ours = Sudoku(**size)
    ours.reset(seed=seed)
    scale = ours.scale
    theirs = upstream.SudokuEnv(clues=1, max_turns=ours.max_turns, scale=scale)
    theirs.full_grid, theirs.board = (
        [digits[row * scale :][:scale] for row in range(scale)] for digits in (ours.solution, ours.cells)
    )
    theirs.init_num_empty = ours.cells.count(0)
    return ours, theirs


def digits(player: random.Random, env: Sudoku, skill: float) -> Iterator[str]:
    """Right digits at a rate of `skill`; wrong ones, filled cells and what is out of range."""
    scale = env.scale
    while True:
        row, column, digit = (player.randint(1, scale) for _ in range(3))
        if player.random() < skill:
            cell = player.choice([cell for cell, held in enumerate(env.cells) if not held])
            row, column, digit = cell // scale + 1, cell % scale + 1, env.solution[cell]
        elif player.random() < 0.2:
            row, column, digit = (player.choice((0, 1, 2, scale, scale + 1, 10**20)) for _ in range(3))
        yield f"{boxed('1 1 1')} or {boxed(f'{row} {column} {digit}')}."


@SIZES
def test_digits_are_paid_and_end_alike(size: dict[str, int], games: int) -> None:
    turns = solved = 0
    for seed, player in seeds(games):
        ours, theirs = pair(seed, size)
        turns += play(ours, theirs, digits(player, ours, player.choice((0.3, 0.8, 1.0))))
        solved += 0 not in ours.cells
        assert [cell for row in theirs.board for cell in row] == ours.cells
    assert turns > 1000
    assert solved > games // 5 or size["max_turns"] == 6


def test_upstream_empties_as_many_cells() -> None:
    """On average; both try 50 of 81 cells, or 10 of 16."""
    for size, games in ((EASY, 150), (HARD, 5)):
        ours, theirs = [], []
        for seed, _ in seeds(games):
            env = Sudoku(**size)
            env.reset(seed=seed)
            ours.append(env.cells.count(0))
            theirs.append(upstream.SudokuEnv(**size).init_num_empty)
        assert sum(ours) / games == pytest.approx(sum(theirs) / games, abs=0.25 if games > 5 else 2.0)


def test_forms_are_read_alike() -> None:
    read = 0
    for seed, player in seeds(60):
        for form in FORMS:
            ours, theirs = pair(seed, EASY)
            wrong = boxed(f"{ours.cells.index(0) // 4 + 1} {ours.cells.index(0) % 4 + 1} 9")
            read += play(ours, theirs, [boxed(form.format(*player.choices(range(1, 5), k=3))), wrong]) == 2
    assert 150 < read < 400


@pytest.mark.parametrize("turn", [1, 5, 15])
@pytest.mark.parametrize(
    "action",
    [*MALFORMED, "\\boxed{1 1}", "\\boxed{1 1 " + "1" * 5000 + "}", "\\boxed{\u0661 \u0662 \u0663}"],
    ids=ascii,
)
def test_malformed_actions_end_alike(action: str, turn: int) -> None:
    ours, theirs = pair(0, EASY)
    play(ours, theirs, [boxed("1 1 9")] * (turn - 1) + [action])


def test_scribbles_are_read_alike() -> None:
    for seed, player in seeds(1500):
        ours, theirs = pair(seed, EASY)
        play(ours, theirs, scribbles(player, DIGITS, [f"{n} {n % 4 + 1} {n}" for n in range(1, 5)], 3))
