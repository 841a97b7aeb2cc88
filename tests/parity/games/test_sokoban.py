"""Sokoban beside upstream's, in the same room."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scribbles import scribbles
from side_by_side import MALFORMED, play, seeds

from gem_games._game import boxed
from gem_games._sokoban_rooms import Room
from gem_games.sokoban import Sokoban

upstream = pytest.importorskip("gem.envs.game_env.sokoban.sokoban")

EASY = {"dim_room": (6, 6), "num_boxes": 2, "max_turns": 20}
HARD = {"dim_room": (8, 8), "num_boxes": 4, "max_turns": 50}
LARGEST = {"dim_room": (8, 8), "num_boxes": 5, "max_turns": 50}
SIZES = pytest.mark.parametrize("size", [EASY, HARD, LARGEST], ids=str)
WAYS = ("up", "down", "left", "right")


def arrays(room: Room) -> tuple[Any, Any, dict[Any, Any]]:
    """A room as upstream's generator gives it: what is fixed, and what stands there."""
    fixed = np.zeros((room.height, room.width), dtype=int)
    for kind, cells in ((1, room.floor), (2, room.targets)):
        fixed.flat[list(cells)] = kind
    state = fixed.copy()
    state.flat[list(room.boxes)] = 4
    state.flat[list(room.boxes & room.targets)] = 3
    state.flat[room.player] = 5
    return fixed, state, {}


@pytest.fixture
def theirs_in(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes upstream's game in a room of ours; its own generator takes seconds."""

    def build(room: Room, size: dict[str, Any]) -> Any:
        monkeypatch.setattr(upstream, "generate_room", lambda **_: arrays(room))
        return upstream.SokobanEnv(**size)

    return build


def pair(seed: int, size: dict[str, Any], theirs_in: Any) -> tuple[Sokoban, Any, Room]:
    """Both games, in the same room."""
    ours = Sokoban(**size)
    ours.reset(seed=seed)
    room = ours.draw_room()
    ours.enter(room)
    return ours, theirs_in(room, size), room


def boards_agree(ours: Sokoban, theirs: Any) -> bool:
    return ours.board().split() == theirs._render_board().split()


def moves(player: random.Random, env: Sokoban) -> Iterator[str]:
    """Moves of all kinds, in any case; most of them not blocked."""
    while True:
        way = player.choice(WAYS) if player.random() < 0.3 else env.sample_random_action()[7:-1]
        yield f"{boxed('up')} or {boxed(player.choice((way, way.upper(), way.title())))}."


def solution(ours: Sokoban, room: Room) -> Iterator[str]:
    """The way to the next push, and the push, until it is solved."""
    steps = {"up": -room.width, "down": room.width, "left": -1, "right": 1}
    for before, after in room.pushes:
        boxes = {cell for cell in room.floor if ours.board()[2 * cell] in "X√"}
        ways: dict[int, list[str]] = {ours.player: []}
        queue = [ours.player]
        for cell in queue:
            for way, step in steps.items():
                if cell + step in room.floor - boxes and cell + step not in ways:
                    ways[cell + step] = [*ways[cell], way]
                    queue.append(cell + step)
        push = next(way for way, step in steps.items() if step == after - before)
        yield from map(boxed, [*ways[2 * before - after], push])


@SIZES
def test_moves_are_paid_and_end_alike(size: dict[str, Any], theirs_in: Any) -> None:
    turns = 0
    for seed, player in seeds(60):
        ours, theirs, _ = pair(seed, size, theirs_in)
        turns += play(ours, theirs, moves(player, ours))
        assert boards_agree(ours, theirs)
    assert turns > 800


@SIZES
@pytest.mark.parametrize("late", [False, True], ids=["in time", "late"])
def test_solutions_are_paid_and_end_alike(size: dict[str, Any], late: bool, theirs_in: Any) -> None:
    solved = 0
    for seed, player in seeds(25):
        ours, theirs, room = pair(seed, size, theirs_in)
        ours.max_turns = theirs.max_turns = player.randint(1, 30) if late else 1000
        play(ours, theirs, solution(ours, room))
        assert boards_agree(ours, theirs)
        solved += ours.done == ours.num_boxes
    assert solved == 25 or late


def test_the_board_reads_alike(theirs_in: Any) -> None:
    for seed, player in seeds(20):
        ours, theirs, _ = pair(seed, HARD, theirs_in)
        for action, _ in zip(moves(player, ours), range(20), strict=False):
            ours.step(action)
            theirs.step(action)
            assert ours.board().split("\n") == theirs._render_board().strip().split("\n")


@pytest.mark.parametrize("turn", [1, 5, 20])
@pytest.mark.parametrize(
    "action", [*MALFORMED, "up", "\\boxed{ up}", "\\boxed{up }", "\\BOXED{UP}", "\\boxed{up}\\boxed{}"], ids=ascii
)
def test_forms_are_read_alike(action: str, turn: int, theirs_in: Any) -> None:
    for seed, _ in seeds(3):
        ours, theirs, room = pair(seed, EASY, theirs_in)
        steps = {"up": -room.width, "down": room.width, "left": -1, "right": 1}
        wall = next((way for way, step in steps.items() if room.player + step not in room.floor), None)
        play(ours, theirs, [boxed(wall or "up")] * (turn - 1) + [action])


def test_scribbles_are_read_alike(theirs_in: Any) -> None:
    for seed, player in seeds(1000):
        ours, theirs, _ = pair(seed, EASY, theirs_in)
        play(ours, theirs, scribbles(player, [*WAYS, "UP", "Left"], [*WAYS, "Up", "LEFT"], 5))
