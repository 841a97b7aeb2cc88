"""Sudoku, played: puzzles with one solution, pay for every right digit, endings, and the clues of `-v1-`."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from gem_core.env import StepResult
from gem_core.errors import EnvError
from gem_games._sudoku_boards import puzzle
from gem_games.sudoku import Sudoku, SudokuV1

EASY = {"scale": 4, "clues": 10, "max_turns": 15}
HARD = {"scale": 9, "clues": 50, "max_turns": 50}
RANDOM = {"scale": None, "clues": None, "max_turns": None}
EASY_V1 = {"scale": 4, "clues": 7, "max_turns": 15}
HARD_V1 = {"scale": 9, "clues": 34, "max_turns": 50}

Grid = list[list[int]]


def shown(board: str) -> Grid:
    """The digits that a player sees; 0 for a dot."""
    rows = [line.partition("|")[2] for line in board.splitlines()[1:]]
    grid = [[int(mark.replace(".", "0")) for mark in re.findall(r"[.\d]", row)] for row in rows]
    return [row for row in grid if row]


def start(seed: int, sudoku: type[Sudoku] = Sudoku, **kwargs: Any) -> tuple[Sudoku, Grid]:
    env = sudoku(**{**EASY, **kwargs})
    return env, shown(env.reset(seed=seed)[1]["suffix"])


def fits(grid: Grid, row: int, column: int, digit: int) -> bool:
    block = round(len(grid) ** 0.5)
    top, left = row // block * block, column // block * block
    return not (
        digit in grid[row]
        or any(line[column] == digit for line in grid)
        or any(digit in line[left : left + block] for line in grid[top : top + block])
    )


def solutions(grid: Grid) -> list[Grid]:
    """Two at most, found by trying every digit in the cell that leaves the fewest."""
    best: tuple[int, int, list[int]] | None = None
    for row, line in enumerate(grid):
        for column, digit in enumerate(line):
            if digit == 0:
                options = [one for one in range(1, len(grid) + 1) if fits(grid, row, column, one)]
                if best is None or len(options) < len(best[2]):
                    best = row, column, options
    if best is None:
        return [[[*line] for line in grid]]
    row, column, options = best
    found: list[Grid] = []
    for digit in options:
        grid[row][column] = digit
        found += solutions(grid)
        grid[row][column] = 0
        if len(found) > 1:
            break
    return found


def write(env: Sudoku, row: int, column: int, digit: object) -> StepResult:
    return env.step(f"I write \\boxed{{{row + 1} {column + 1} {digit}}}.")


def gaps(grid: Grid) -> list[tuple[int, int]]:
    return [(row, column) for row, line in enumerate(grid) for column, digit in enumerate(line) if digit == 0]


# -- puzzles -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kwargs", "seeds"), [(EASY, 40), (HARD, 5)], ids=["easy", "hard"])
@pytest.mark.parametrize("sudoku", [Sudoku, SudokuV1])
def test_a_puzzle_has_one_solution(sudoku: type[Sudoku], kwargs: dict[str, Any], seeds: int) -> None:
    for seed in range(seeds):
        _, grid = start(seed, sudoku, **kwargs)
        assert len(grid) == kwargs["scale"]
        assert len(solutions(grid)) == 1


def test_upstreams_clues_are_cells_that_are_tried() -> None:
    """Few of 10 tries in 16 cells fail, and few of 50 in 81."""
    for kwargs, least in ((EASY, 7), (HARD, 40)):
        counts = [len(gaps(start(seed, **kwargs)[1])) for seed in range(30)]
        assert least <= min(counts) < max(counts) <= kwargs["clues"]


@pytest.mark.parametrize("scale", [4, 9])
def test_a_cell_keeps_its_digit_only_where_it_must(scale: int) -> None:
    """With every cell tried, none that is left can be emptied."""
    solution, cells = puzzle(scale, scale * scale, random.Random(1))
    given = [cell for cell, digit in enumerate(cells) if digit]
    assert all(digit in (0, solution[cell]) for cell, digit in enumerate(cells))
    for cell in given if scale == 4 else given[:4]:
        without = [0 if other == cell else digit for other, digit in enumerate(cells)]
        assert len(solutions([without[row * scale :][:scale] for row in range(scale)])) > 1


def test_boards_differ_and_digits_stand_everywhere() -> None:
    boards = [start(seed, **HARD)[0].solution for seed in range(40)]
    assert len({tuple(board) for board in boards}) == 40
    assert all(len({board[cell] for board in boards}) >= 7 for cell in range(81))


@pytest.mark.parametrize(("scale", "clues"), [(4, 5), (4, 7), (4, 15), (9, 28), (9, 34), (9, 80)])
def test_v1_deals_as_many_clues_as_it_is_asked_for(scale: int, clues: int) -> None:
    for seed in range(3):
        _, grid = start(seed, SudokuV1, scale=scale, clues=clues, max_turns=60)
        assert scale * scale - len(gaps(grid)) == clues


@pytest.mark.parametrize(("sudoku", "sizes"), [(Sudoku, {(4, 15), (9, 50)}), (SudokuV1, {(4, 15), (9, 50)})])
def test_the_random_variant_draws_its_size_for_each_episode(sudoku: type[Sudoku], sizes: set[tuple[int, int]]) -> None:
    env = sudoku(**RANDOM)
    seen: list[tuple[int, int]] = []
    for seed in range(12):
        rules, info = env.reset(seed=seed)
        seen.append((len(shown(info["suffix"])), env.max_turns))
        assert str(env.max_turns) in rules
    assert set(seen) == sizes


@pytest.mark.parametrize(
    ("sudoku", "kwargs"),
    [
        (Sudoku, {"scale": 5}),
        (Sudoku, {"clues": 0}),
        (Sudoku, {"clues": 17}),
        (Sudoku, {"max_turns": 0}),
        (Sudoku, {"scale": None}),
        (SudokuV1, {"clues": 3}),
        (SudokuV1, {"clues": 16}),
        (SudokuV1, {"clues": 7, "max_turns": 8}),
        (SudokuV1, {"scale": 9, "clues": 23, "max_turns": 99}),
    ],
    ids=str,
)
def test_limits_that_make_no_game_are_refused(sudoku: type[Sudoku], kwargs: dict[str, Any]) -> None:
    with pytest.raises(EnvError):
        sudoku(**{**EASY, **kwargs})


# -- play --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kwargs", [EASY, HARD], ids=["easy", "hard"])
def test_every_right_digit_pays_alike_and_the_last_one_ends_the_episode(kwargs: dict[str, Any]) -> None:
    for seed in range(4):
        env, grid = start(seed, **kwargs)
        (solution,) = solutions(grid)
        cells = gaps(grid)
        answers = [write(env, row, column, solution[row][column]) for row, column in cells]
        assert [answer[1] for answer in answers] == [pytest.approx(1 / len(cells))] * len(cells)
        assert [answer[2:4] for answer in answers[:-1]] == [(False, False)] * (len(cells) - 1)
        assert [answer[4]["success"] for answer in answers[:-1]] == [False] * (len(cells) - 1)
        assert answers[-1][2:4] == (True, False)
        assert answers[-1][4]["success"] is True
        assert shown(answers[-1][4]["suffix"]) == solution


def test_a_right_digit_is_seen_at_once() -> None:
    env, grid = start(0)
    (solution,) = solutions(grid)
    row, column = gaps(grid)[0]
    grid[row][column] = solution[row][column]
    assert shown(write(env, row, column, solution[row][column])[4]["suffix"]) == grid


def test_what_does_not_count_costs_the_turn_and_nothing_else() -> None:
    env, grid = start(0, max_turns=100)
    (solution,) = solutions(grid)
    row, column = gaps(grid)[0]
    filled = next((row, column) for row in range(4) for column in range(4) if grid[row][column])
    for where, digit in [
        ((row, column), 5),
        ((row, column), 0),
        ((4, 0), 1),
        ((-1, 0), 1),
        ((row, 10**9), 1),
        (filled, solution[filled[0]][filled[1]]),
    ]:
        _, reward, terminated, truncated, info = write(env, *where, digit)
        assert (reward, terminated, truncated) == (0.0, False, False)
        assert info["invalid_action"] is True
        assert info["success"] is False
        assert shown(info["suffix"]) == grid


def test_a_wrong_digit_is_invalid_only_where_it_breaks_a_rule_in_sight() -> None:
    kinds: set[bool] = set()
    for seed in range(10):
        env, grid = start(seed, max_turns=1000)
        (solution,) = solutions(grid)
        for row, column in gaps(grid):
            for digit in {1, 2, 3, 4} - {solution[row][column]}:
                _, reward, terminated, _, info = write(env, row, column, digit)
                assert (reward, terminated, shown(info["suffix"])) == (0.0, False, grid)
                assert info.get("invalid_action", False) is not fits(grid, row, column, digit)
                kinds.add("invalid_action" in info)
    assert kinds == {True, False}


def test_the_turns_run_out() -> None:
    env, grid = start(0, max_turns=3)
    (solution,) = solutions(grid)
    (row, column), (other_row, other_column), *_ = gaps(grid)
    assert write(env, row, column, 9)[2:4] == (False, False)
    write(env, row, column, 9)
    _, reward, *ends, info = write(env, other_row, other_column, solution[other_row][other_column])
    assert reward == pytest.approx(1 / len(gaps(grid)))
    assert ends == [True, True]
    assert info["success"] is False


def test_the_last_digit_on_the_last_turn_is_a_win_and_no_truncation() -> None:
    _, grid = start(0)
    (solution,) = solutions([[*line] for line in grid])
    env, _ = start(0, max_turns=len(gaps(grid)))
    answers = [write(env, row, column, solution[row][column]) for row, column in gaps(grid)]
    assert answers[-1][2:4] == (True, False)
    assert answers[-1][4]["success"] is True


# -- the action format -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "action",
    [
        "",
        "1 1 1",
        "\\boxed{1 1}",
        "\\boxed{1 1 1 1}",
        "\\boxed{1,1,1}",
        "\\boxed{1 1 x}",
        "\\boxed{-1 1 1}",
        "\\boxed{1 1 " + "7" * 5000 + "}",
    ],
    ids=lambda action: action[:14] or "empty",
)
@pytest.mark.parametrize("sudoku", [Sudoku, SudokuV1])
@pytest.mark.parametrize("turn", [1, 9])
def test_without_a_move_in_a_box_the_episode_ends(sudoku: type[Sudoku], action: str, turn: int) -> None:
    env, grid = start(0, sudoku, max_turns=9)
    for _ in range(turn - 1):
        write(env, 0, 0, 9)
    _, reward, terminated, truncated, info = env.step(action)
    assert (reward, terminated, truncated) == (-0.1, True, turn == 9)
    assert info == {"success": False, "invalid_action": True, "suffix": env.board()}
    assert shown(info["suffix"]) == grid


@pytest.mark.parametrize("box", ["\\boxed{ %s}", "\\boxed{%s }", "\\boxed{%s  %s}"])
def test_v1_reads_white_space_and_v0_does_not(box: str) -> None:
    box = box.replace("%s", "1 1", 1).replace("%s", "9") if box.count("%s") == 2 else box % "1 1 9"
    assert start(0)[0].step(box)[1:3] == (-0.1, True)
    assert start(0, SudokuV1)[0].step(box)[1:3] == (0.0, False)


def test_one_tab_or_line_end_between_the_numbers_will_do() -> None:
    assert start(0)[0].step("\\boxed{1\t1\n9}")[1:3] == (0.0, False)


def test_the_last_box_counts() -> None:
    env, grid = start(0)
    (solution,) = solutions(grid)
    row, column = gaps(grid)[0]
    right = f"\\boxed{{{row + 1} {column + 1} {solution[row][column]}}}"
    assert env.step(f"{right} no: \\boxed{{1 1 9}}")[1] == 0.0
    assert env.step(f"\\boxed{{1 1 9}} no: {right} \\boxed{{nothing}}")[1] > 0.0


@pytest.mark.parametrize("sudoku", [Sudoku, SudokuV1])
def test_the_example_in_the_rules_is_an_action(sudoku: type[Sudoku]) -> None:
    env = sudoku(**EASY)
    rules, _ = env.reset(seed=0)
    assert env.step(rules)[1] >= 0.0


# -- random play -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kwargs", [EASY, HARD], ids=["easy", "hard"])
def test_random_play_is_valid_and_solves_it_in_the_end(kwargs: dict[str, Any]) -> None:
    for seed in range(3):
        env, _ = start(seed, **{**kwargs, "max_turns": 10_000})
        terminated, total, info = False, 0.0, {}
        while not terminated:
            _, reward, terminated, _, info = env.step(env.sample_random_action())
            assert "invalid_action" not in info
            total += reward
        assert total == pytest.approx(1.0)
        assert info["success"] is True
