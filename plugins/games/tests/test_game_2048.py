"""2048, played: sliding, rewards, endings, parameters, and what -v1- fixes."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from gem_core.env import StepResult
from gem_core.errors import EnvError
from gem_games.game_2048 import Board, Game2048, Game2048V1

BOTH = pytest.mark.parametrize("game", [Game2048, Game2048V1])
V0 = [(64, 50), (512, 50), (2048, 100)]
V1 = [(64, 50), (128, 90), (256, 170)]
EMPTY = (0, 0, 0, 0)


def start(board: Board, target: int = 64, turns: int = 50, game: type[Game2048] = Game2048) -> Game2048:
    """A game with this board, whose largest tile is the first."""
    env = game(target_tile=target, max_turns=turns, board_size=len(board))
    env.reset(seed=0)
    env.tiles = board
    env.first = env.largest = max(map(max, board))
    return env


def go(env: Game2048, direction: str) -> StepResult:
    return env.step(f"\\boxed{{{direction}}}")


def come(before: Board, after: Board) -> list[tuple[int, int]]:
    """Tiles that differ between two boards: what was there and what is."""
    return [
        (old, new) for rows in zip(before, after, strict=True) for old, new in zip(*rows, strict=True) if old != new
    ]


# -- moves -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "left"),
    [
        ((0, 0, 0, 2), (2, 0, 0, 0)),
        ((2, 2, 2, 2), (4, 4, 0, 0)),
        ((0, 2, 2, 2), (4, 2, 0, 0)),
        ((2, 0, 0, 2), (4, 0, 0, 0)),
        ((4, 2, 2, 0), (4, 4, 0, 0)),
        ((2, 2, 4, 8), (4, 4, 8, 0)),
        ((2, 4, 4, 2), (2, 8, 2, 0)),
        ((8, 0, 8, 16), (16, 16, 0, 0)),
    ],
)
def test_tiles_slide_and_merge_once_from_the_side_they_slide_to(row: tuple[int, ...], left: tuple[int, ...]) -> None:
    """Seen in all four directions; the one tile that comes afterwards is 2 or 4 in an empty cell."""
    lines = {
        "left": ((row, EMPTY, EMPTY, EMPTY), (left, EMPTY, EMPTY, EMPTY)),
        "right": ((row[::-1], EMPTY, EMPTY, EMPTY), (left[::-1], EMPTY, EMPTY, EMPTY)),
    }
    lines["up"] = tuple(tuple(zip(*board, strict=True)) for board in lines["left"])
    lines["down"] = tuple(tuple(zip(*board, strict=True)) for board in lines["right"])
    for direction, (before, after) in lines.items():
        env = start(before)
        _, *_, info = go(env, direction)
        assert "invalid_action" not in info
        ((was, tile),) = come(after, env.tiles)
        assert was == 0
        assert tile in (2, 4)


def test_the_board_shows_the_tiles() -> None:
    env = start(((2, 0, 0, 4), (0, 16, 0, 0), EMPTY, EMPTY))
    assert env.board() == " 2  .  .  4\n . 16  .  .\n .  .  .  .\n .  .  .  ."


@BOTH
def test_two_tiles_are_there_at_first_anywhere(game: type[Game2048]) -> None:
    env = game(target_tile=64, max_turns=50)
    places: set[int] = set()
    kinds: Counter[int] = Counter()
    for seed in range(500):
        rules, info = env.reset(seed=seed)
        assert "64" in rules
        assert "50 moves" in rules
        assert info == {"suffix": env.board()}
        tiles = [tile for row in env.tiles for tile in row]
        assert sum(map(bool, tiles)) == 2
        places.update(place for place, tile in enumerate(tiles) if tile)
        kinds.update(filter(None, tiles))
    assert places == set(range(16))
    assert set(kinds) == {2, 4}
    assert 50 < kinds[4] < 150, "one in ten of a thousand"


def test_a_move_that_moves_nothing_costs_the_turn_and_nothing_else() -> None:
    board = ((2, 4, 0, 0), EMPTY, EMPTY, EMPTY)
    env = start(board, turns=2)
    for last in (False, True):
        _, *rest = go(env, "left")
        assert rest == [0.0, last, last, {"success": False, "invalid_action": True, "suffix": env.board()}]
        assert env.tiles == board


@pytest.mark.parametrize(
    "box", ["\\boxed{left}", "\\boxed{LEFT}", "\\BOXED{Left}", "\\boxed{up} \\boxed{left} \\boxed{x}"]
)
def test_the_last_box_with_a_direction_counts_in_any_case(box: str) -> None:
    env = start(((0, 2, 0, 0), EMPTY, EMPTY, EMPTY))
    assert "invalid_action" not in env.step(box)[4]
    assert env.tiles[0][0] == 2


@BOTH
@pytest.mark.parametrize("action", ["", "left", "\\boxed{}", "\\boxed{west}", "\\boxed{left up}", "\\boxed{left"])
@pytest.mark.parametrize("turn", [1, 2])
def test_without_a_direction_in_a_box_the_episode_ends(game: type[Game2048], action: str, turn: int) -> None:
    env = start(((2, 4, 0, 0), EMPTY, EMPTY, EMPTY), target=8, turns=4, game=game)
    env.max_turns = 2
    for _ in range(turn - 1):
        go(env, "left")
    info = {"success": False, "invalid_action": True, "suffix": env.board()}
    assert env.step(action)[1:] == (-0.1, True, turn == 2, info)


def test_white_space_in_the_box_is_read_by_v1_only() -> None:
    board = ((0, 2, 0, 0), EMPTY, EMPTY, EMPTY)
    assert start(board).step("\\boxed{ left }")[1] == -0.1
    assert start(board, game=Game2048V1).step("\\boxed{ left }")[1] == 0.0


def test_a_dotless_i_that_case_folding_lets_pass_moves_nothing() -> None:
    """Upstream's pattern takes it too, and then knows no such direction."""
    assert go(start(((2, 0, 0, 0), EMPTY, EMPTY, EMPTY)), "r\u0131ght")[4]["invalid_action"]


# -- rewards -----------------------------------------------------------------------------------------------------------


def test_doublings_of_the_largest_tile_are_paid_by_their_part_of_the_way() -> None:
    env = start(((4, 4, 8, 0), EMPTY, EMPTY, EMPTY), target=64)
    env.first = env.largest = 2
    assert go(env, "left")[1] == pytest.approx(2 / 5), "the 8 that was there already"
    env.tiles = ((8, 8, 0, 0), EMPTY, EMPTY, EMPTY)
    assert go(env, "left")[1] == pytest.approx(1 / 5)
    env.tiles = ((8, 8, 0, 0), EMPTY, EMPTY, EMPTY)
    assert go(env, "left")[1] == 0.0, "16 was paid before"


@BOTH
def test_the_target_ends_it_and_makes_the_sum_one(game: type[Game2048]) -> None:
    env = start(((2, 2, 4, 8), (16, 32, 0, 0), EMPTY, EMPTY), game=game)
    env.first = env.largest = 2
    total = 0.0
    for tiles, ended in (((8, 8, 0, 0), False), ((16, 16, 0, 0), False), ((32, 32, 0, 0), True)):
        env.tiles = (tiles, EMPTY, EMPTY, EMPTY)
        _, reward, *rest = go(env, "left")
        total += reward
        assert rest == [ended, False, {"success": ended, "suffix": env.board()}]
    assert total == pytest.approx(1.0)


@pytest.mark.parametrize(("game", "paid"), [(Game2048, 0.8), (Game2048V1, 0.4)])
def test_half_of_the_target_tile_is_worth_most_of_it_in_v0_only(game: type[Game2048], paid: float) -> None:
    env = start(((16, 16, 0, 0), EMPTY, EMPTY, EMPTY), game=game)
    env.first = env.largest = 2
    assert go(env, "left")[1] == pytest.approx(paid)


# -- endings -----------------------------------------------------------------------------------------------------------


def test_a_full_board_without_equal_neighbours_is_lost() -> None:
    """The one cell that opens is filled by 2 or 4, and neither has an equal neighbour."""
    env = start(((16, 8, 16, 8), (8, 16, 8, 16), (16, 8, 16, 8), (16, 8, 0, 32)), target=2048)
    _, *rest = go(env, "right")
    assert all(map(all, env.tiles))
    assert rest == [0.0, True, False, {"success": False, "suffix": env.board()}]
    assert "boxed" in env.sample_random_action(), "asking after the end is no error"


def test_a_full_board_with_equal_neighbours_goes_on() -> None:
    env = start(((16, 8, 16, 8), (8, 16, 8, 16), (16, 8, 16, 32), (16, 8, 0, 32)), target=2048)
    assert go(env, "right")[2] is False
    assert all(map(all, env.tiles))


def test_the_last_turn_pays_its_doublings() -> None:
    env = start(((4, 4, 0, 0), EMPTY, EMPTY, EMPTY), target=64, turns=1)
    _, reward, *rest = go(env, "left")
    assert reward == pytest.approx(1 / 4)
    assert rest == [True, True, {"success": False, "suffix": env.board()}]


def test_the_target_on_the_last_turn_is_a_win_and_no_truncation() -> None:
    env = start(((32, 32, 0, 0), EMPTY, EMPTY, EMPTY), turns=1)
    assert go(env, "left")[1:4] == (1.0, True, False)


# -- parameters --------------------------------------------------------------------------------------------------------


@BOTH
def test_the_random_variant_draws_one_of_three_goals_for_each_episode(game: type[Game2048]) -> None:
    env = game(target_tile=None, max_turns=None)
    goals = set()
    for seed in range(60):
        env.reset(seed=seed)
        goals.add((env.target_tile, env.max_turns))
    assert goals == {(16, 20), (32, 30), (64, 50)}


@BOTH
@pytest.mark.parametrize(
    "goal",
    [
        {"target_tile": None},
        {"target_tile": 4},
        {"target_tile": 100},
        {"target_tile": -64},
        {"max_turns": 0},
        {"board_size": 1},
    ],
    ids=str,
)
def test_goals_that_make_no_game_are_refused(game: type[Game2048], goal: dict[str, Any]) -> None:
    with pytest.raises(EnvError):
        game(**{"target_tile": 64, "max_turns": 50, **goal})


@pytest.mark.parametrize("goal", [(512, 50), (2048, 100), (128, 50), (64, 28)])
def test_v1_refuses_targets_above_what_the_turns_bring_on_average(goal: tuple[int, int]) -> None:
    assert Game2048(*goal).target_tile == goal[0]
    with pytest.raises(EnvError, match="out of reach"):
        Game2048V1(*goal)


@pytest.mark.parametrize("goal", [*V1, (64, 29), (2048, 1000)])
def test_v1_takes_targets_that_the_turns_bring(goal: tuple[int, int]) -> None:
    assert Game2048V1(*goal).target_tile == goal[0]


def test_v1_refuses_targets_above_what_the_cells_hold() -> None:
    assert Game2048V1(32, 1000, board_size=2).target_tile == 32
    with pytest.raises(EnvError, match="out of reach"):
        Game2048V1(64, 1000, board_size=2)


def test_no_more_comes_to_the_board_than_the_bound_says() -> None:
    """Before the last of T moves: T + 1 tiles of at most 4."""
    env = Game2048(target_tile=2048, max_turns=1000)
    for seed in range(20):
        env.reset(seed=seed)
        for moves in range(1, 60):
            value = sum(map(sum, env.tiles))
            assert 2 * (moves + 1) <= value <= 4 * (moves + 1)
            if env.step(env.sample_random_action())[2]:
                break


# -- random play -------------------------------------------------------------------------------------------------------


@BOTH
def test_random_play_is_valid_and_its_pay_is_what_the_largest_tile_says(game: type[Game2048]) -> None:
    env = game(target_tile=64, max_turns=50)
    for seed in range(40):
        env.reset(seed=seed)
        total, ended, info = 0.0, False, {}
        while not ended:
            _, reward, ended, _, info = env.step(env.sample_random_action())
            assert "invalid_action" not in info
            total += reward
        first, largest = env.first.bit_length(), env.largest.bit_length()
        way = (largest - first) / (7 - first)
        solved = info["success"]
        assert solved == (env.largest == 64)
        assert total == pytest.approx(way if game is Game2048 else 0.5 * way + 0.5 * solved)


@BOTH
def test_the_example_in_the_rules_is_an_action(game: type[Game2048]) -> None:
    env = game(target_tile=64, max_turns=50)
    assert env.step(env.reset(seed=0)[0])[1] >= 0.0
