"""Minesweeper, played: opening, flags, rewards, endings, parameters, and what -v1- fixes."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from gem_core.env import StepResult
from gem_core.errors import EnvError
from gem_games.minesweeper import Minesweeper, MinesweeperV1

EASY = {"rows": 5, "cols": 5, "num_mines": 5, "max_turns": 25}
HARD = {"rows": 8, "cols": 8, "num_mines": 12, "max_turns": 64}
RANDOM = {"rows": None, "cols": None, "num_mines": None, "max_turns": None}
BOTH = pytest.mark.parametrize("game", [Minesweeper, MinesweeperV1])
# A wall of mines: the columns on its left have no number but 0 and 2 or 3, and opening (0, 0) opens them all.
WALL = [(row, 3) for row in range(5)]
# (0, 4) is shut in, and opening (4, 0) opens all other safe cells.
CORNER = [(0, 3), (1, 3), (1, 4)]


def start(game: type[Minesweeper], mines: Collection[tuple[int, int]], **kwargs: Any) -> Minesweeper:
    """A game of 5 x 5 cells with these mines."""
    env = game(**{**EASY, "num_mines": len(mines), **kwargs})
    env.reset(seed=0)
    env.mines = frozenset(row * env.cols + col for row, col in mines)
    return env


def reveal(env: Minesweeper, row: int, col: int) -> StepResult:
    return env.step(f"\\boxed{{reveal {row} {col}}}")


def flag(env: Minesweeper, row: int, col: int) -> StepResult:
    return env.step(f"\\boxed{{flag {row} {col}}}")


def cells(env: Minesweeper) -> list[list[str]]:
    """The board as a player reads it, without the numbers of rows and columns."""
    return [line.split()[1:] for line in env.board().splitlines()[1:]]


# -- parameters --------------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("size", [EASY, HARD], ids=["easy", "hard"])
def test_the_first_cell_and_those_around_it_are_safe(game: type[Minesweeper], size: dict[str, int]) -> None:
    env = game(**size)
    mined: set[int] = set()
    for seed in range(200):
        env.reset(seed=seed)
        row, col = divmod(seed % (env.rows * env.cols), env.cols)
        _, reward, _, _, info = reveal(env, row, col)
        assert reward > 0
        assert "invalid_action" not in info
        assert cells(env)[row][col] == "0"
        assert len(env.mines) == size["num_mines"]
        mined |= env.mines
    assert mined == set(range(env.rows * env.cols)), "mines can be anywhere"


@BOTH
def test_the_random_variant_draws_size_mines_and_turns_for_each_episode(game: type[Minesweeper]) -> None:
    env = game(**RANDOM)
    sizes = set()
    for seed in range(60):
        env.reset(seed=seed)
        sizes.add((env.rows, env.cols, env.num_mines, env.max_turns))
        assert len(cells(env)) == env.rows
    assert sizes == {(5, 5, 5, 25), (6, 6, 7, 36), (7, 7, 9, 49), (8, 8, 12, 64)}


@BOTH
@pytest.mark.parametrize(
    "size",
    [
        {"rows": None},
        {"num_mines": 0},
        {"num_mines": 17},
        {"rows": 1, "num_mines": 3},
        {"rows": 2, "cols": 2, "num_mines": 1},
        {"rows": 0},
        {"cols": -5},
        {"max_turns": 0},
    ],
    ids=str,
)
def test_sizes_that_make_no_game_are_refused(game: type[Minesweeper], size: dict[str, Any]) -> None:
    """17 mines do not fit on 5 x 5 cells when the first reveal is in the middle."""
    with pytest.raises(EnvError):
        game(**{**EASY, **size})


@BOTH
@pytest.mark.parametrize(("rows", "cols", "mines"), [(5, 5, 16), (1, 5, 2), (2, 9, 12), (30, 12, 351)])
def test_as_many_mines_as_fit_can_be_laid_around_any_cell(
    game: type[Minesweeper], rows: int, cols: int, mines: int
) -> None:
    env = game(rows=rows, cols=cols, num_mines=mines, max_turns=1)
    for row in range(rows):
        for col in range(cols):
            env.reset(seed=row)
            assert reveal(env, row, col)[1] > 0


# -- opening -----------------------------------------------------------------------------------------------------------


def test_a_zero_opens_the_cells_around_it_and_pays_for_all_of_them() -> None:
    env = start(Minesweeper, WALL)
    _, reward, *ends, info = reveal(env, 0, 0)
    assert reward == pytest.approx(15 / 20)
    assert ends == [False, False]
    column = ["2", "3", "3", "3", "2"]
    assert cells(env) == [["0", "0", count, ".", "."] for count in column]
    assert info == {"success": False, "suffix": env.board()}


def test_a_number_opens_itself_only() -> None:
    env = start(Minesweeper, [(0, 0), (1, 1)])
    assert reveal(env, 0, 1)[1] == pytest.approx(1 / 23)
    assert cells(env)[0] == [".", "2", ".", ".", "."]


def test_the_board_names_rows_and_columns_of_every_size() -> None:
    env = start(Minesweeper, [(11, 1)], rows=12, cols=11)
    lines = env.board().splitlines()
    assert lines[0].split() == [str(col) for col in range(11)]
    assert [line.split()[0] for line in lines[1:]] == [str(row) for row in range(12)]
    assert {len(line) for line in lines} == {len(lines[0])}
    assert start(Minesweeper, WALL).board().splitlines()[:2] == ["  0 1 2 3 4", "0 . . . . ."]


def test_flags_stop_the_opening_of_neighbours() -> None:
    env = start(Minesweeper, WALL)
    flag(env, 2, 0)
    assert reveal(env, 0, 0)[1] == pytest.approx(14 / 20)
    assert cells(env)[2] == ["F", "0", "3", ".", "."]
    flag(env, 2, 0)
    assert reveal(env, 2, 0)[1] == pytest.approx(1 / 20)


# -- flags and moves that do not count ---------------------------------------------------------------------------------


@BOTH
def test_a_flag_is_set_and_taken_away(game: type[Minesweeper]) -> None:
    env = start(game, WALL)
    assert flag(env, 1, 3)[1:4] == (0.0, False, False)
    assert cells(env)[1][3] == "F"
    assert flag(env, 1, 3)[4] == {"success": False, "suffix": env.board()}
    assert cells(env)[1][3] == "."


@BOTH
@pytest.mark.parametrize("move", ["reveal 0 0", "flag 0 0", "reveal 5 0", "flag 0 5", "dig 0 4", "reveal 0 99999999"])
def test_a_move_that_cannot_be_costs_the_turn_and_nothing_else(game: type[Minesweeper], move: str) -> None:
    """`(0, 0)` is open."""
    env = start(game, WALL, max_turns=3)
    reveal(env, 0, 0)
    board = env.board()
    for last in (False, True):
        _, *rest = env.step(f"\\boxed{{{move}}}")
        assert rest == [0.0, last, last, {"success": False, "invalid_action": True, "suffix": board}]


@BOTH
@pytest.mark.parametrize(
    "move", ["", "0 0", "reveal 0", "reveal 0 0 0", "reveal,0,0", "reveal -1 0", "reveal 0 " + "9" * 5000]
)
@pytest.mark.parametrize("turn", [1, 2])
def test_without_a_move_in_a_box_the_episode_ends(game: type[Minesweeper], move: str, turn: int) -> None:
    env = start(game, WALL, max_turns=2)
    for _ in range(turn - 1):
        flag(env, 0, 0)
    info = {"success": False, "invalid_action": True, "suffix": env.board()}
    assert env.step(f"\\boxed{{{move}}}")[1:] == (-0.1, True, turn == 2, info)


def test_words_are_read_in_any_case_and_one_white_space_parts_them() -> None:
    assert start(Minesweeper, WALL).step("\\boxed{ReVeal\t0\n0}")[1] > 0
    for box in ("reveal  0 0", " reveal 0 0", "reveal 0 0 "):
        assert start(Minesweeper, WALL).step(f"\\boxed{{{box}}}")[1] == -0.1
        assert start(MinesweeperV1, WALL).step(f"\\boxed{{{box}}}")[1] > 0


# -- endings -----------------------------------------------------------------------------------------------------------


@BOTH
def test_a_mine_loses(game: type[Minesweeper]) -> None:
    env = start(game, WALL)
    _, *rest = reveal(env, 2, 3)
    assert rest == [0.0, True, False, {"success": False, "suffix": env.board()}]


@BOTH
def test_all_mines_flagged_before_the_last_cell_is_opened_wins(game: type[Minesweeper]) -> None:
    env = start(game, CORNER)
    for mine in CORNER:
        flag(env, *mine)
    total = reveal(env, 4, 0)[1]
    _, reward, *rest = reveal(env, 0, 4)
    assert total + reward == pytest.approx(1.0)
    assert rest == [True, False, {"success": True, "suffix": env.board()}]


def test_v0_goes_on_where_a_mine_has_no_flag_and_v1_is_solved() -> None:
    ends = {}
    for game in (Minesweeper, MinesweeperV1):
        env = start(game, CORNER)
        total = reveal(env, 4, 0)[1]
        _, reward, *rest = reveal(env, 0, 4)
        assert total + reward == pytest.approx(1.0)
        ends[game] = (*rest[:2], rest[2]["success"])
    assert ends == {Minesweeper: (False, False, False), MinesweeperV1: (True, False, True)}


def test_v0_cannot_be_finished_by_flagging_afterwards() -> None:
    env = start(Minesweeper, CORNER, max_turns=7)
    reveal(env, 4, 0)
    reveal(env, 0, 4)
    assert [flag(env, *mine)[2] for mine in CORNER] == [False] * 3
    assert "invalid_action" not in env.step(env.sample_random_action())[4]
    assert flag(env, 0, 3)[1:4] == (0.0, True, True)


def test_a_flagged_mine_loses_in_v0_and_cannot_be_revealed_in_v1() -> None:
    for game, lost in ((Minesweeper, True), (MinesweeperV1, False)):
        env = start(game, WALL)
        flag(env, 0, 3)
        _, reward, terminated, _, info = reveal(env, 0, 3)
        assert (reward, terminated) == (0.0, lost)
        assert info.get("invalid_action", False) is not lost


@BOTH
def test_a_flag_on_no_mine_cannot_be_revealed(game: type[Minesweeper]) -> None:
    env = start(game, WALL)
    flag(env, 0, 0)
    assert reveal(env, 0, 0)[1:3] == (0.0, False)
    assert cells(env)[0][0] == "F"


def test_v1_lays_no_mines_for_a_flagged_cell() -> None:
    env = MinesweeperV1(**EASY)
    env.reset(seed=0)
    flag(env, 0, 0)
    reveal(env, 0, 0)
    assert not env.mines
    assert reveal(env, 4, 4)[1] > 0


@BOTH
def test_the_last_turn_pays_for_what_it_opened(game: type[Minesweeper]) -> None:
    env = start(game, WALL, max_turns=1)
    _, reward, *ends, info = reveal(env, 0, 0)
    assert (reward, ends, info["success"]) == (pytest.approx(15 / 20), [True, True], False)


# -- random play -------------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("size", [EASY, HARD, RANDOM], ids=["easy", "hard", "random"])
def test_random_play_is_valid_and_returns_the_share_of_cells_opened(game: type[Minesweeper], size: Any) -> None:
    env = game(**size)
    for seed in range(40):
        env.reset(seed=seed)
        total, ended = 0.0, False
        while not ended:
            _, reward, ended, _, info = env.step(env.sample_random_action())
            assert "invalid_action" not in info
            total += reward
        opened = sum(cell.isdigit() for row in cells(env) for cell in row)
        assert total == pytest.approx(opened / (env.rows * env.cols - env.num_mines))


@BOTH
def test_the_examples_in_the_rules_are_moves(game: type[Minesweeper]) -> None:
    env = game(**EASY)
    for seed in range(10):
        rules, info = env.reset(seed=seed)
        assert info == {"suffix": env.board()}
        assert "invalid_action" not in env.step(rules)[4]
        assert "F" in env.board(), "the second example sets a flag"
