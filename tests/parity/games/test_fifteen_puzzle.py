"""The fifteen puzzle beside upstream's, with the same board."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from scribbles import scribbles
from side_by_side import MALFORMED, play, seeds

from gem_games._game import boxed
from gem_games.fifteen_puzzle import FifteenPuzzle, FifteenPuzzleV1

upstream = pytest.importorskip("gem.envs.game_env.fifteen_puzzle")

EASY = {"num_rows": 2, "max_turns": 10}
MIDDLE = {"num_rows": 3, "max_turns": 20}
HARD = {"num_rows": 4, "max_turns": 50}
SIZES = pytest.mark.parametrize("size", [EASY, MIDDLE, HARD], ids=str)
WAYS = ("up", "down", "left", "right")
BACK = dict(zip(WAYS, ("down", "up", "right", "left"), strict=True))


def tiles(env: FifteenPuzzle) -> list[list[int | None]]:
    """The board as upstream keeps it."""
    held = [int(tile.strip("_") or 0) or None for tile in env.tiles]
    return [held[row * env.num_rows :][: env.num_rows] for row in range(env.num_rows)]


def pair(seed: int, size: dict[str, int], ours: FifteenPuzzle | None = None) -> tuple[FifteenPuzzle, Any]:
    """Both games, with the same board."""
    ours = ours or FifteenPuzzle(**size)
    ours.reset(seed=seed)
    theirs = upstream.FifteenPuzzleEnv(**size)
    theirs.board = tiles(ours)
    return ours, theirs


def slides(player: random.Random) -> Iterator[str]:
    """Moves of all kinds, blocked ones among them."""
    while True:
        yield f"{boxed(player.choice(WAYS))} or {boxed(player.choice(WAYS))}."


@SIZES
def test_slides_are_paid_and_end_alike(size: dict[str, int]) -> None:
    turns = solved = 0
    for seed, player in seeds(300):
        ours, theirs = pair(seed, size)
        turns += play(ours, theirs, slides(player))
        assert theirs.board == tiles(ours)
        solved += [*ours.tiles] == sorted(ours.tiles)
    assert turns > 2000
    assert solved > 10 or size != EASY


@SIZES
def test_the_winning_slide_is_paid_and_ends_alike(size: dict[str, int]) -> None:
    """Boards a known walk away from order, won on the last turn and before it."""
    for seed, player in seeds(100):
        walker = FifteenPuzzleV1(**size)
        walker.reset(seed=seed)
        walker.tiles, walker.gap = sorted(walker.tiles), size["num_rows"] ** 2 - 1
        ways = []
        for _ in range(player.choice((1, 4, size["max_turns"]))):
            slide = walker.ACTION.fullmatch(walker.sample_random_action())
            assert slide is not None
            walker.play(slide)  # not a step, because a walk through order would end the episode
            ways.append(slide[1])
        ours, theirs = pair(seed, size)
        ours.tiles, ours.gap = [*walker.tiles], walker.gap
        theirs.board = tiles(ours)
        play(ours, theirs, [boxed(BACK[way]) for way in reversed(ways)] + [boxed("up")] * 50)
        assert theirs.board == tiles(ours)


def test_boards_are_dealt_alike() -> None:
    """Every arrangement of 2 x 2 as often as the others, those included that cannot be put in order."""
    ours, theirs = Counter[str](), Counter[str]()
    for seed, _ in seeds(2400):
        env = FifteenPuzzle(**EASY)
        env.reset(seed=seed)
        ours[str(tiles(env))] += 1
        theirs[str(upstream.FifteenPuzzleEnv(**EASY).board)] += 1
    assert set(ours) == set(theirs)
    assert all(60 <= count <= 150 for counts in (ours, theirs) for count in counts.values())


@pytest.mark.parametrize("turn", [1, 5, 10])
@pytest.mark.parametrize(
    "action", [*MALFORMED, "up", "\\boxed{UP}", "\\boxed{ up}", "\\boxed{up }", "\\boxed{up}\\boxed{}"], ids=ascii
)
def test_forms_are_read_alike(action: str, turn: int) -> None:
    for seed, _ in seeds(10):
        ours, theirs = pair(seed, EASY)
        blocked = next(way for way in WAYS if boxed(way) not in {ours.sample_random_action() for _ in range(50)})
        play(ours, theirs, [boxed(blocked)] * (turn - 1) + [action])


def test_scribbles_are_read_alike() -> None:
    for seed, player in seeds(2000):
        ours, theirs = pair(seed, MIDDLE)
        play(ours, theirs, scribbles(player, [*WAYS, "UP", "Left"], WAYS, 5))
