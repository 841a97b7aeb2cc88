"""Tower of Hanoi beside upstream's."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from scribbles import scribbles
from side_by_side import MALFORMED, play, seeds

from gem_games._game import boxed
from gem_games.tower_of_hanoi import TowerofHanoi

upstream = pytest.importorskip("gem.envs.game_env.tower_of_hanoi")

EASY = {"num_disks": 3, "max_turns": 10}
HARD = {"num_disks": 5, "max_turns": 35}
RANDOM = {"num_disks": None, "max_turns": None}
SIZES = pytest.mark.parametrize("size", [EASY, HARD, RANDOM, {"num_disks": 2, "max_turns": 6}], ids=str)


def pair(seed: int, size: dict[str, Any]) -> tuple[TowerofHanoi, Any]:
    """Both games, with the same size."""
    ours = TowerofHanoi(**size)
    ours.reset(seed=seed)
    return ours, upstream.TowerofHanoiEnv(num_disks=ours.num_disks, max_turns=ours.max_turns)


def solution(disks: int, source: str = "A", target: str = "C", spare: str = "B") -> Iterator[str]:
    if disks:
        yield from solution(disks - 1, source, spare, target)
        yield boxed(f"{source},{target}")
        yield from solution(disks - 1, spare, target, source)


def moves(player: random.Random, disks: int) -> Iterator[str]:
    """The solution, with more or fewer random moves on the way to it."""
    noise = player.choice((0.0, 0.05, 0.5))
    for move in solution(disks):
        if player.random() < noise:
            yield boxed(player.choice("ABCabc") + player.choice((" ", "", ", ")) + player.choice("ABCabc"))
        yield move
    while True:
        yield boxed(f"{player.choice('ABC')} {player.choice('ABC')}")


@SIZES
def test_moves_are_paid_and_end_alike(size: dict[str, Any]) -> None:
    turns = won = 0
    for seed, player in seeds(500):
        ours, theirs = pair(seed, size)
        turns += play(ours, theirs, moves(player, ours.num_disks))
        assert {tower: [*disks] for tower, disks in ours.towers.items()} == theirs.board
        won += len(ours.towers["C"]) == ours.num_disks
    assert turns > 1500
    assert 100 < won < 500


@SIZES
@pytest.mark.parametrize("before", [0, 3, None], ids=["first", "fourth", "last"])
def test_malformed_actions_end_alike(size: dict[str, Any], before: int | None) -> None:
    for action in MALFORMED:
        ours, theirs = pair(0, size)
        turns = ours.max_turns - 1 if before is None else before
        play(ours, theirs, [*[boxed("A A")] * turns, action])


def test_boxes_are_read_alike() -> None:
    for seed, player in seeds(50):
        for action in scribbles(player, [*"ABCabcDd12"], ["A C", "a,b", "BC", "A , c", "C\tA"], 60):
            play(*pair(seed, EASY), [action])
