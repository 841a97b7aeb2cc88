"""The experts of the games: valid, as good as search proves on small sizes, and blind to what is hidden."""

from __future__ import annotations

import itertools
from collections import deque
from typing import Any

import pytest

from gem_core import make
from gem_games.fifteen_puzzle import FifteenPuzzle
from gem_games.guess_the_number import GuessTheNumber
from gem_games.mastermind import Mastermind
from gem_games.minesweeper import CLOSED, Minesweeper
from gem_games.plugin import gem_envs
from gem_games.tower_of_hanoi import TowerofHanoi
from gem_testing._play import Subject
from gem_testing.checks import expert

SLOW = ("Game2048", "FifteenPuzzle-v0-hard")  # half of the boards of the second have no solution
LOST = ("Minesweeper", "FifteenPuzzle-v0", "Game2048-v0-hard", "Game2048-v0-extreme-hard", "Game2048-v0-random")
"""Games that luck, a board without a solution or a target out of reach can lose."""
IDS = [spec.id for spec in gem_envs()]


def play(env: Any, seed: int | None = None) -> tuple[float, int, bool]:
    """Return, turns and success of the expert."""
    if seed is not None:
        env.reset(seed=seed)
    total, turns = 0.0, 0
    while True:
        _, reward, terminated, truncated, info = env.step(env.expert_action())
        total, turns = total + reward, turns + 1
        if terminated or truncated:
            return total, turns, info["success"]


@pytest.mark.parametrize("env_id", IDS)
def test_every_game_has_an_expert_that_keeps_the_promises_of_one(env_id: str) -> None:
    few = env_id.startswith(tuple(f"game:{name}" for name in SLOW))
    assert [*expert(Subject(env_id, seeds=1 if few else 3))] == []


@pytest.mark.parametrize("env_id", [one for one in IDS if not one.startswith(tuple(f"game:{name}" for name in LOST))])
def test_every_task_is_solved(env_id: str) -> None:
    env = make(env_id)
    for seed in range(1 if "2048" in env_id else 5):
        total, _, success = play(env, seed)
        assert success
        assert total == pytest.approx(1.0) or "WikiGame" in env_id  # each of its moves costs 0.05


def test_bisection_needs_the_fewest_guesses() -> None:
    env, turns = GuessTheNumber(1, 50, 50), 0
    for number in range(1, 51):
        env.reset(seed=0)
        env.target = number
        turns += play(env)[1]
    assert turns == 243  # the sum of the depths of a balanced search tree of 50 numbers


def test_hanoi_is_left_by_a_shortest_way_from_every_position() -> None:
    env = TowerofHanoi(num_disks=4, max_turns=100)
    env.reset(seed=0)
    assert play(env)[1] == 2**4 - 1
    env = TowerofHanoi(num_disks=3, max_turns=100)
    best = _hanoi_distances(3)
    for places in itertools.product("ABC", repeat=3):
        if places != ("C",) * 3:
            env.reset(seed=0)
            env.towers = {t: tuple(disk for disk in (3, 2, 1) if places[disk - 1] == t) for t in "ABC"}
            assert play(env)[1] == best[places]


def _hanoi_distances(disks: int) -> dict[tuple[str, ...], int]:
    """Moves from each position to all disks on C; `places[i]` is the tower of disk i + 1."""
    found = {("C",) * disks: 0}
    waiting = deque(found)
    while waiting:
        places = waiting.popleft()
        for disk, tower in itertools.product(range(disks), "ABC"):
            if places[disk] in places[:disk] or tower in places[: disk + 1]:
                continue
            after = (*places[:disk], tower, *places[disk + 1 :])
            if after not in found:
                found[after] = found[places] + 1
                waiting.append(after)
    return found


def test_small_fifteen_puzzles_are_solved_by_a_shortest_way() -> None:
    env = FifteenPuzzle(num_rows=2, max_turns=50)
    env.reset(seed=0)
    ordered = tuple(env._ordered)
    found = {ordered: 0}
    waiting = deque(found)
    while waiting:
        tiles = waiting.popleft()
        for way in ("up", "down", "left", "right"):
            env.reset(seed=0)
            env.tiles, env.gap = [*tiles], tiles.index(ordered[-1])
            env.step(f"\\boxed{{{way}}}")
            if (after := tuple(env.tiles)) not in found:
                found[after] = found[tiles] + 1
                waiting.append(after)
    assert len(found) == 12
    for tiles, moves in found.items():
        if moves:
            env.reset(seed=0)
            env.tiles, env.gap = [*tiles], tiles.index(ordered[-1])
            assert play(env)[1] == moves


def test_every_code_is_found() -> None:
    env, turns = Mastermind(2, 6, 20), []
    for code in itertools.permutations(range(1, 7), 2):
        env.reset(seed=0)
        env.code = code
        _, needed, success = play(env)
        assert success
        turns.append(needed)
    assert max(turns) <= 5


def test_the_expert_of_minesweeper_knows_no_mine() -> None:
    env = Minesweeper(5, 5, 5, 25)
    for seed in range(20):
        env.reset(seed=seed)
        env.step(env.expert_action())
        closed = [cell for cell, sign in enumerate(env.view) if sign == CLOSED]
        said = env.expert_action()
        if len(closed) > env.num_mines:
            # Any other arrangement that agrees with the numbers gets the same move.
            env.mines = frozenset(_others(env, closed))
            assert env.expert_action() == said


def _others(env: Minesweeper, closed: list[int]) -> tuple[int, ...]:
    clues = env._clues()
    return next(
        mines
        for mines in itertools.combinations(reversed(closed), env.num_mines)
        if all(len(cells.intersection(mines)) == count for cells, count in clues)
    )


@pytest.mark.parametrize("env_id", ["game:Wordle-v0-hard", "game:Hangman-v1-easy", "game:Mastermind-v0-hard"])
def test_the_first_guess_depends_on_no_secret(env_id: str) -> None:
    env = make(env_id)
    guesses: set[str] = set()
    for seed in range(6):
        env.reset(seed=seed)
        guesses.add(env.expert_action())
    assert len(guesses) == 1
