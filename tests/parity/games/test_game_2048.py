"""2048 beside upstream's, with the same tiles coming."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from scribbles import scribbles
from side_by_side import MALFORMED, play, seeds

from gem_games._game import boxed
from gem_games.game_2048 import Game2048

upstream = pytest.importorskip("gem.envs.game_env.game_2048")

GOALS = pytest.mark.parametrize("goal", [(64, 50), (512, 50), (2048, 100), (None, None), (128, 150), (8, 5)], ids=str)
DIRECTIONS = ("up", "down", "left", "right")


def cells(board: list[list[int]]) -> list[int]:
    return [cell for row in board for cell in row]


def pair(seed: int, goal: tuple[int | None, int | None], size: int = 4) -> tuple[Game2048, Any]:
    """Both games, with the same board; upstream's gets each new tile that ours, which moves first, has drawn."""
    ours = Game2048(*goal, board_size=size)
    ours.reset(seed=seed)
    theirs = upstream.Game2048Env(ours.target_tile, ours.max_turns, board_size=size)

    def follow() -> None:
        wanted = [[*row] for row in ours.tiles]
        changed = [old for old, new in zip(cells(theirs.board), cells(wanted), strict=True) if old != new]
        assert changed == [0], "only the new tile differs after the slide"
        theirs.board = wanted

    theirs.board = [[*row] for row in ours.tiles]
    theirs.max_tile_achieved = theirs.init_max_tile_achieved = ours.first
    theirs._add_random_tile = follow
    return ours, theirs


def moves(player: random.Random) -> Iterator[str]:
    """Directions: anyhow, or mostly into a corner, which goes further."""
    weights = player.choice(((1, 1, 1, 1), (1, 20, 20, 3), (0, 1, 1, 0.05)))
    while True:
        direction = player.choices(DIRECTIONS, weights)[0]
        yield boxed(direction.upper() if player.random() < 0.1 else direction)


@GOALS
@pytest.mark.parametrize(("size", "games"), [(4, 100), (3, 40), (2, 40)])
def test_moves_are_paid_and_end_alike(goal: tuple[int | None, int | None], size: int, games: int) -> None:
    for seed, player in seeds(games):
        ours, theirs = pair(seed, goal, size)
        play(ours, theirs, moves(player))
        assert [[*row] for row in ours.tiles] == theirs.board
        assert ours.largest == theirs.max_tile_achieved


@GOALS
@pytest.mark.parametrize("before", [0, 3, None], ids=["first", "fourth", "last"])
def test_malformed_actions_end_alike(goal: tuple[int | None, int | None], before: int | None) -> None:
    for action in MALFORMED:
        ours, theirs = pair(0, goal)
        turns = min(ours.max_turns - 1, 50) if before is None else before
        play(ours, theirs, [*[boxed("left")] * turns, action])


def test_boxes_are_read_alike() -> None:
    words = (*DIRECTIONS, "UP", "Left", "\u0130", "\u0131", "lef", "t", "\\BOXED{up}")
    for seed, player in seeds(50):
        for action in scribbles(player, words, [*DIRECTIONS, "r\u0131ght", "R\u0130GHT", "DOWN", "up down"], 40):
            play(*pair(seed, (64, 50)), [action])
