"""The fifteen puzzle, played: slides, endings, and which boards are dealt."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest

from gem_core.env import StepResult
from gem_core.errors import EnvError
from gem_games.fifteen_puzzle import FifteenPuzzle, FifteenPuzzleV1

EASY = {"num_rows": 2, "max_turns": 10}
HARD = {"num_rows": 4, "max_turns": 50}
RANDOM = {"num_rows": None, "max_turns": None}

Board = tuple[int, ...]
WAYS = {"up": (1, 0), "down": (-1, 0), "left": (0, 1), "right": (0, -1)}


def shown(board: str) -> Board:
    """The tiles that a player sees, row by row; 0 for the gap."""
    return tuple(int(mark.replace("__", "0")) for mark in board.split())


def goal(rows: int) -> Board:
    return (*range(1, rows * rows), 0)


def after(board: Board, way: str) -> Board | None:
    """The board when the tile that can go this way has gone; `None` where there is none."""
    rows = round(len(board) ** 0.5)
    gap = board.index(0)
    row, column = gap // rows + WAYS[way][0], gap % rows + WAYS[way][1]
    if not (0 <= row < rows and 0 <= column < rows):
        return None
    tiles = [*board]
    tiles[gap], tiles[row * rows + column] = tiles[row * rows + column], 0
    return tuple(tiles)


def solvable(board: Board) -> bool:
    """By parity: that of the tiles as a permutation against that of the gap's way home."""
    rows = round(len(board) ** 0.5)
    inversions = sum(one > other for n, one in enumerate(board) for other in board[n + 1 :] if one and other)
    gap_from_below = rows - board.index(0) // rows
    return inversions % 2 == 0 if rows % 2 else (inversions + gap_from_below) % 2 == 1


def solution(board: Board, most: int) -> list[str] | None:
    """The shortest, by breadth."""
    ways: dict[Board, list[str]] = {board: []}
    layer = [board]
    while layer and goal(round(len(board) ** 0.5)) not in ways:
        layer = [new for old in layer for way in WAYS if (new := after(old, way)) and _note(ways, old, way, new)]
    found = ways.get(goal(round(len(board) ** 0.5)))
    return found if found is not None and len(found) <= most else None


def _note(ways: dict[Board, list[str]], old: Board, way: str, new: Board) -> bool:
    if new in ways:
        return False
    ways[new] = [*ways[old], way]
    return True


def start(seed: int, puzzle: type[FifteenPuzzle] = FifteenPuzzle, **kwargs: Any) -> tuple[FifteenPuzzle, Board]:
    env = puzzle(**{**EASY, **kwargs})
    return env, shown(env.reset(seed=seed)[1]["suffix"])


def slide(env: FifteenPuzzle, way: str) -> StepResult:
    return env.step(f"I slide \\boxed{{{way}}}.")


# -- boards ------------------------------------------------------------------------------------------------------------


def test_v0_deals_every_arrangement_alike() -> None:
    boards = Counter(start(seed)[1] for seed in range(4800))
    assert len(boards) == 24
    assert 130 <= min(boards.values()) <= max(boards.values()) <= 270
    assert sum(count for board, count in boards.items() if solvable(board)) == pytest.approx(2400, abs=200)


@pytest.mark.parametrize("rows", [2, 3, 4, 5, 11])
def test_a_board_has_every_tile_once(rows: int) -> None:
    for puzzle in (FifteenPuzzle, FifteenPuzzleV1):
        env = puzzle(num_rows=rows, max_turns=30)
        lines = env.reset(seed=0)[1]["suffix"].splitlines()
        assert len({len(line) for line in lines}) == 1, "the columns stand under one another"
        assert [len(line.split()) for line in lines] == [rows] * rows
        tiles = [int(mark.strip("_") or 0) for line in lines for mark in line.split()]
        assert sorted(tiles) == list(range(rows * rows))


@pytest.mark.parametrize(("rows", "turns", "seeds"), [(2, 10, 300), (2, 1, 20), (2, 12, 100), (3, 12, 60)])
def test_v1_deals_boards_that_can_be_put_in_order_in_time(rows: int, turns: int, seeds: int) -> None:
    boards = {start(seed, FifteenPuzzleV1, num_rows=rows, max_turns=turns)[1] for seed in range(seeds)}
    for board in boards:
        assert board != goal(rows)
        assert solution(board, turns) is not None


def test_v1_deals_many_hard_boards() -> None:
    boards = {start(seed, FifteenPuzzleV1, **HARD)[1] for seed in range(200)}
    assert len(boards) > 195
    assert all(map(solvable, boards))
    assert {board.index(0) for board in boards} == set(range(16))


def test_v1_deals_easy_boards_of_every_distance() -> None:
    boards = {start(seed, FifteenPuzzleV1)[1] for seed in range(300)}
    assert {len(solution(board, 10) or []) for board in boards} >= {2, 3, 4, 5, 6}


@pytest.mark.parametrize("puzzle", [FifteenPuzzle, FifteenPuzzleV1])
def test_the_random_variant_draws_its_size_for_each_episode(puzzle: type[FifteenPuzzle]) -> None:
    env = puzzle(**RANDOM)
    sizes: set[tuple[int, int]] = set()
    for seed in range(30):
        rules, info = env.reset(seed=seed)
        rows = info["suffix"].count("\n") + 1
        sizes.add((rows, env.max_turns))
        assert {str(rows * rows - 1), str(env.max_turns)} <= set(re.findall(r"\d+", rules))
    assert sizes == {(2, 10), (3, 20), (4, 50)}


@pytest.mark.parametrize(
    "kwargs", [{"num_rows": 1}, {"max_turns": 0}, {"num_rows": None}, {"max_turns": None}], ids=str
)
def test_limits_that_make_no_game_are_refused(kwargs: dict[str, Any]) -> None:
    with pytest.raises(EnvError):
        FifteenPuzzle(**{**EASY, **kwargs})


# -- play --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [2, 3, 4])
def test_a_slide_moves_the_tile_next_to_the_gap(rows: int) -> None:
    for seed in range(5):
        env, board = start(seed, num_rows=rows, max_turns=1000)
        for way in [*WAYS, "up", "up", "left", "left", "down", "right", "up"]:
            new = after(board, way)
            _, reward, terminated, truncated, info = slide(env, way)
            assert info.get("invalid_action", False) is (new is None)
            board = new or board
            assert shown(info["suffix"]) == board
            assert (reward, terminated, truncated) == (float(info["success"]), info["success"], False)


def test_putting_the_tiles_in_order_pays_one() -> None:
    seen = 0
    for seed in range(60):
        env, board = start(seed)
        ways = solution(board, 10)
        if not ways:
            continue
        answers = [slide(env, way) for way in ways]
        assert [answer[1:4] for answer in answers[:-1]] == [(0.0, False, False)] * (len(ways) - 1)
        assert answers[-1][1:4] == (1.0, True, False)
        assert answers[-1][4]["success"] is True
        seen += 1
    assert seen > 10


def test_the_last_slide_on_the_last_turn_is_a_win_and_no_truncation() -> None:
    env, board = start(3, FifteenPuzzleV1)
    ways = solution(board, 10)
    assert ways
    blocked = next(way for way in WAYS if after(board, way) is None)
    for _ in range(10 - len(ways)):
        slide(env, blocked)
    for way in ways[:-1]:
        slide(env, way)
    assert slide(env, ways[-1])[1:4] == (1.0, True, False)


def test_a_board_dealt_in_order_is_no_win_before_it_is_put_in_order_again() -> None:
    seed = next(seed for seed in range(1000) if start(seed)[1] == goal(2))
    env, _ = start(seed)
    assert slide(env, "up")[1:4] == (0.0, False, False), "no tile is below the gap"
    assert slide(env, "down")[1:4] == (0.0, False, False)
    assert slide(env, "up")[1:4] == (1.0, True, False)


@pytest.mark.parametrize("last", ["valid", "blocked"])
def test_the_last_turn_pays_for_the_cells_that_are_right(last: str) -> None:
    for seed in range(20):
        env, board = start(seed, max_turns=1)
        way = next(way for way in WAYS if (after(board, way) is None) is (last == "blocked"))
        board = after(board, way) or board
        _, reward, terminated, truncated, info = slide(env, way)
        assert reward == pytest.approx(sum(map(int.__eq__, board, goal(2))) / 4)
        assert (terminated, truncated, info["success"]) == (True, True, False)
        assert info.get("invalid_action", False) is (last == "blocked")


# -- the action format -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ["", "up", "\\boxed{}", "\\boxed{north}", "\\boxed{up, up}", "\\boxed{up"])
@pytest.mark.parametrize("puzzle", [FifteenPuzzle, FifteenPuzzleV1])
@pytest.mark.parametrize("turn", [1, 5])
def test_without_a_move_in_a_box_the_episode_ends(puzzle: type[FifteenPuzzle], action: str, turn: int) -> None:
    env, board = start(1, puzzle, max_turns=5)
    blocked = next(way for way in WAYS if after(board, way) is None)
    for _ in range(turn - 1):
        slide(env, blocked)
    answer = env.step(action)
    assert answer[1:4] == (-0.1, True, turn == 5)
    assert answer[4] == {"success": False, "invalid_action": True, "suffix": env.board()}


@pytest.mark.parametrize("form", ["UP", "Up", " up", "up ", "\tup\n"])
def test_v1_reads_upper_case_and_white_space_and_v0_does_not(form: str) -> None:
    assert slide(start(0)[0], form)[1:3] == (-0.1, True)
    env = FifteenPuzzleV1(num_rows=3, max_turns=20)
    env.reset(seed=0)
    assert slide(env, form)[1] != -0.1


def test_the_last_box_counts() -> None:
    for seed in range(10):
        env, board = start(seed, num_rows=3)
        ways = [way for way in WAYS if after(board, way)]
        assert shown(env.step(f"\\boxed{{{ways[0]}}} or \\boxed{{{ways[1]}}} \\boxed{{x}}")[4]["suffix"]) == after(
            board, ways[1]
        )


@pytest.mark.parametrize("puzzle", [FifteenPuzzle, FifteenPuzzleV1])
def test_the_example_in_the_rules_is_an_action(puzzle: type[FifteenPuzzle]) -> None:
    env = puzzle(**HARD)
    rules, _ = env.reset(seed=0)
    assert env.step(rules)[1] == 0.0


# -- random play -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kwargs", [EASY, HARD, RANDOM], ids=["easy", "hard", "random"])
@pytest.mark.parametrize("puzzle", [FifteenPuzzle, FifteenPuzzleV1])
def test_random_play_is_valid(puzzle: type[FifteenPuzzle], kwargs: dict[str, Any]) -> None:
    env = puzzle(**kwargs)
    for seed in range(20):
        env.reset(seed=seed)
        terminated, turns, info = False, 0, {}
        while not terminated:
            _, _, terminated, _, info = env.step(env.sample_random_action())
            turns += 1
            assert "invalid_action" not in info
        assert info["success"] or turns == env.max_turns
