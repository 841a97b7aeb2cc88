"""Minesweeper beside upstream's, with the same mines."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from scribbles import DIGITS, scribbles
from side_by_side import MALFORMED, play, seeds

from gem_games._game import boxed
from gem_games.minesweeper import Minesweeper

upstream = pytest.importorskip("gem.envs.game_env.minesweeper")

EASY = {"rows": 5, "cols": 5, "num_mines": 5, "max_turns": 25}
HARD = {"rows": 8, "cols": 8, "num_mines": 12, "max_turns": 64}
RANDOM = {"rows": None, "cols": None, "num_mines": None, "max_turns": None}
ODD = {"rows": 12, "cols": 4, "num_mines": 3, "max_turns": 20}
SIZES = pytest.mark.parametrize("size", [EASY, HARD, RANDOM, ODD], ids=str)


class Follower(Minesweeper):
    """Takes the mines that upstream lays at the first reveal."""

    theirs: Any

    def lay_mines(self, first: int) -> frozenset[int]:
        self.theirs._setup_mines(*divmod(first, self.cols))
        self.theirs.first_reveal = False
        numbers = [number for row in self.theirs.grid for number in row]
        return frozenset(cell for cell, number in enumerate(numbers) if number == -1)


def pair(seed: int, size: dict[str, Any]) -> tuple[Follower, Any]:
    """Both games, with the same size."""
    ours = Follower(**size)
    ours.reset(seed=seed)
    ours.theirs = upstream.MinesweeperEnv(ours.rows, ours.cols, ours.num_mines, ours.max_turns)
    return ours, ours.theirs


def shown(theirs: Any) -> list[str]:
    """What upstream's board shows, cell by cell."""
    return [cell for line in theirs._render_board().splitlines()[1:] for cell in line.split()[1:]]


def any_move(player: random.Random, env: Minesweeper) -> str:
    """Some move, now and then outside the board."""
    word = player.choice(("reveal", "reveal", "Reveal", "FLAG", "flag", "flag", "dig"))
    return boxed(f"{word} {player.randint(0, env.rows)} {player.randint(0, env.cols)}")


def moves(player: random.Random, env: Minesweeper) -> Iterator[str]:
    """A player who knows the mines after the first move, and does something else now and then."""
    noise, flags = player.choice(((0.0, 1.0), (0.02, 1.0), (0.1, 0.9), (0.1, 0.2), (1.0, 0.0)))
    while True:
        hidden = [*env.mines - env.flags]
        safe = [cell for cell, sign in enumerate(env.view) if sign == "." and cell not in env.mines]
        if player.random() < noise or not (hidden or safe):
            yield any_move(player, env)
        elif hidden and player.random() < flags:
            row, col = divmod(player.choice(hidden), env.cols)
            yield boxed(f"flag {row} {col}")
        else:
            row, col = divmod(player.choice(safe or hidden), env.cols)
            yield boxed(f"reveal {row} {col}")


@SIZES
def test_moves_are_paid_and_end_alike(size: dict[str, Any]) -> None:
    turns = won = 0
    for seed, player in seeds(250):
        ours, theirs = pair(seed, size)
        turns += play(ours, theirs, moves(player, ours))
        assert ours.view == shown(theirs)
        won += bool(ours.mines) and ours.solved()
    assert turns > 1500
    assert 30 < won < 250


@SIZES
def test_the_board_shows_the_same_after_every_move(size: dict[str, Any]) -> None:
    for seed, player in seeds(40):
        ours, theirs = pair(seed, size)
        for action in moves(player, ours):
            ended = any(ours.step(action)[2:4])
            assert any(theirs.step(action)[2:4]) == ended
            assert ours.view == shown(theirs)
            if ended:
                break


@SIZES
@pytest.mark.parametrize("before", [0, 3, None], ids=["first", "fourth", "last"])
def test_malformed_actions_end_alike(size: dict[str, Any], before: int | None) -> None:
    for action in MALFORMED:
        ours, theirs = pair(0, size)
        turns = ours.max_turns - 1 if before is None else before
        play(ours, theirs, [*[boxed("flag 0 0")] * turns, action])


def test_boxes_are_read_alike() -> None:
    words = ("reveal", "flag", "FLAG", "dig", "r\u00e9veal", *DIGITS)
    for seed, player in seeds(80):
        for action in scribbles(player, words, ["reveal 1 2", "flag 0 0", "Flag\n3\t4", "reveal 5 0", "dig 1 1"], 40):
            play(*pair(seed, EASY), [action])


def test_the_first_reveal_of_a_flag_lays_the_mines() -> None:
    for seed, _ in seeds(200):
        moves = ["flag 2 2", "reveal 2 2", "reveal 0 0", "flag 2 2", "reveal 2 2"]
        play(*pair(seed, EASY), map(boxed, moves))
