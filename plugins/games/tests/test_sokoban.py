"""Sokoban, played: pushes, endings, and rooms that can be solved."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable
from typing import Any

import pytest

from gem_core.env import StepResult
from gem_core.errors import EnvError
from gem_games._sokoban_rooms import Room
from gem_games.sokoban import Sokoban, SokobanV1

EASY = {"dim_room": (6, 6), "num_boxes": 2, "max_turns": 20}
HARD = {"dim_room": (8, 8), "num_boxes": 4, "max_turns": 50}
LARGEST = {"dim_room": (8, 8), "num_boxes": 5, "max_turns": 50}
RANDOM = {"dim_room": None, "num_boxes": None, "max_turns": None}

Cell = tuple[int, int]
WAYS = {"up": (-1, 0), "down": (1, 0), "left": (0, -1), "right": (0, 1)}


def go(cell: Cell, way: str) -> Cell:
    return cell[0] + WAYS[way][0], cell[1] + WAYS[way][1]


class Seen:
    """A room as a player sees it. A target under the player is not shown."""

    def __init__(self, board: str) -> None:
        rows = [line.split() for line in board.splitlines()]
        self.size = len(rows), len(rows[0])
        marks = {(row, column): mark for row, line in enumerate(rows) for column, mark in enumerate(line)}
        assert set(marks.values()) <= set("P#XO√_")
        assert len(marks) == self.size[0] * self.size[1]
        self.floor = frozenset(cell for cell, mark in marks.items() if mark != "#")
        self.boxes = frozenset(cell for cell, mark in marks.items() if mark in "X√")
        self.targets = frozenset(cell for cell, mark in marks.items() if mark in "O√")
        (self.player,) = (cell for cell, mark in marks.items() if mark == "P")

    def after(self, way: str) -> tuple[Cell, frozenset[Cell]] | None:
        """Player and boxes after a move; `None` where it is blocked."""
        there = go(self.player, way)
        beyond = go(there, way)
        if there not in self.floor or (there in self.boxes and (beyond not in self.floor or beyond in self.boxes)):
            return None
        return there, self.boxes if there not in self.boxes else self.boxes - {there} | {beyond}

    def walk(self, goal: Cell) -> list[str]:
        """The shortest way to a cell, round the boxes."""
        ways: dict[Cell, list[str]] = {self.player: []}
        queue = [self.player]
        for cell in queue:
            for way in WAYS:
                there = go(cell, way)
                if there in self.floor - self.boxes and there not in ways:
                    ways[there] = [*ways[cell], way]
                    queue.append(there)
        return ways[goal]


def start(seed: int, sokoban: type[Sokoban] = Sokoban, **kwargs: Any) -> tuple[Sokoban, Seen]:
    env = sokoban(**{**EASY, **kwargs})
    return env, Seen(env.reset(seed=seed)[1]["suffix"])


def move(env: Sokoban, way: str) -> StepResult:
    return env.step(f"I go \\boxed{{{way}}}.")


def room(text: str) -> Room:
    """A room drawn by hand: as shown to a player, without spaces."""
    lines = text.split()
    marks = {row * len(lines[0]) + column: mark for row, line in enumerate(lines) for column, mark in enumerate(line)}
    cells = {name: frozenset(cell for cell, mark in marks.items() if mark in kind) for name, kind in KINDS.items()}
    (player,) = (cell for cell, mark in marks.items() if mark == "P")
    return Room(len(lines), len(lines[0]), **cells, player=player, pushes=())


KINDS = {"floor": "PXO√_", "targets": "O√", "boxes": "X√"}


def inside(text: str, boxes: int, turns: int = 50) -> Sokoban:
    """A game in a room drawn by hand."""
    env = Sokoban(dim_room=(8, 8), num_boxes=boxes, max_turns=turns)
    env.reset(seed=0)
    env.enter(room(text))
    return env


def solve(env: Sokoban, pushes: Iterable[tuple[int, int]]) -> list[StepResult]:
    """Make these pushes, going the shortest way in between."""
    answers: list[StepResult] = []
    for before, after in pushes:
        seen = Seen(env.board())
        width = seen.size[1]
        cell, beyond = divmod(before, width), divmod(after, width)
        way = next(way for way in WAYS if go(cell, way) == beyond)
        behind = 2 * cell[0] - beyond[0], 2 * cell[1] - beyond[1]
        answers += [move(env, step) for step in [*seen.walk(behind), way]]
    return answers


# -- rooms -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kwargs", [EASY, HARD, LARGEST], ids=["easy", "hard", "largest"])
def test_a_room_has_walls_around_a_connected_floor_and_every_box_off_the_targets(kwargs: dict[str, Any]) -> None:
    for seed in range(25):
        _, seen = start(seed, **kwargs)
        assert seen.size == kwargs["dim_room"]
        assert len(seen.boxes) == len(seen.targets) == kwargs["num_boxes"]
        assert not seen.boxes & seen.targets
        assert all(0 < row < seen.size[0] - 1 and 0 < column < seen.size[1] - 1 for row, column in seen.floor)
        seen.boxes = frozenset()
        assert all(seen.walk(cell) is not None for cell in seen.floor)


@pytest.mark.parametrize("kwargs", [EASY, HARD, LARGEST], ids=["easy", "hard", "largest"])
def test_every_room_can_be_solved(kwargs: dict[str, Any]) -> None:
    for seed in range(25):
        env, _ = start(seed, **{**kwargs, "max_turns": 1000})
        env.reset(seed=seed)
        drawn = env.draw_room()
        env.enter(drawn)
        *before, last = solve(env, drawn.pushes)
        assert not any("invalid_action" in answer[4] for answer in before)
        assert all(answer[1:4] == (0.0, False, False) for answer in before)
        assert last[1:4] == (1.0, True, False)
        assert last[4]["success"] is True


@pytest.mark.parametrize("kwargs", [EASY, HARD, LARGEST, {**HARD, "max_turns": 30}], ids=str)
def test_v1_rooms_can_be_solved_in_time(kwargs: dict[str, Any]) -> None:
    for seed in range(20):
        env, _ = start(seed, SokobanV1, **kwargs)
        drawn = env.draw_room()
        env.enter(drawn)
        assert solve(env, drawn.pushes)[-1][1:4] == (1.0, True, False)


def test_rooms_differ_and_are_not_trivial() -> None:
    rooms = [start(seed, **HARD)[1] for seed in range(60)]
    assert len({(seen.floor, seen.boxes, seen.targets) for seen in rooms}) == 60
    assert {len(seen.floor) for seen in rooms} >= {20, 24, 28}


def test_threads_draw_the_rooms_that_they_draw_alone() -> None:
    alone = [start(seed, **HARD)[0].board() for seed in range(12)]
    together: dict[int, str] = {}
    threads = [
        threading.Thread(target=lambda seed=seed: together.update({seed: start(seed, **HARD)[0].board()}))
        for seed in range(12)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [together[seed] for seed in range(12)] == alone


@pytest.mark.parametrize("sokoban", [Sokoban, SokobanV1])
def test_the_random_variant_draws_its_size_for_each_episode(sokoban: type[Sokoban]) -> None:
    env = sokoban(**RANDOM)
    sizes: set[tuple[Cell, int, int]] = set()
    for seed in range(16):
        rules, info = env.reset(seed=seed)
        seen = Seen(info["suffix"])
        (turns,) = map(int, re.findall(r"\d+", rules))
        sizes.add((seen.size, len(seen.boxes), turns))
    assert sizes == {((6, 6), 2, 20), ((8, 8), 5, 50)}


@pytest.mark.parametrize(
    "kwargs",
    [
        {"dim_room": (6,)},
        {"dim_room": (2, 20)},
        {"dim_room": (4, 4), "num_boxes": 2},
        {"num_boxes": 0},
        {"max_turns": 0},
        {"max_turns": None},
        {"dim_room": None},
    ],
    ids=str,
)
def test_limits_that_make_no_game_are_refused(kwargs: dict[str, Any]) -> None:
    with pytest.raises(EnvError):
        Sokoban(**{**EASY, **kwargs})


def test_rooms_need_not_be_square() -> None:
    for size in ((5, 9), (9, 5), (3, 12)):
        assert start(0, dim_room=list(size), num_boxes=1)[1].size == size


# -- play --------------------------------------------------------------------------------------------------------------


def test_moves_walk_and_push_and_walls_and_boxes_block() -> None:
    walked = pushed = blocked = 0
    for seed in range(25):
        env, seen = start(seed, **HARD)
        for turn in range(30):
            way = [*WAYS][(seed * 7 + turn * turn + turn // 3) % 4]
            new = seen.after(way)
            _, reward, terminated, truncated, info = move(env, way)
            now = Seen(info["suffix"])
            assert (now.player, now.boxes) == (new or (seen.player, seen.boxes))
            assert info.get("invalid_action", False) is (new is None)
            assert (reward, terminated, truncated) == (float(info["success"]), info["success"], False)
            blocked += new is None
            pushed += now.boxes != seen.boxes
            walked += new is not None and now.boxes == seen.boxes
            seen = now
    assert min(walked, pushed, blocked) > 50


def test_targets_come_back_into_sight() -> None:
    """When the player leaves one."""
    env = inside("######## #PO_X_O# #_____X# #_____O# ########", boxes=2)
    assert env.board().splitlines()[1] == "# P O _ X _ O #"
    assert move(env, "right")[4]["suffix"].splitlines()[1] == "# _ P _ X _ O #"
    assert move(env, "right")[4]["suffix"].splitlines()[1] == "# _ O P X _ O #"


def test_boxes_are_not_pushed_into_walls_or_boxes() -> None:
    env = inside("####### #PXX_O# #X___O# #####O#", boxes=3)
    for way in ("right", "down", "up", "left"):
        board = env.board()
        _, reward, terminated, _, info = move(env, way)
        assert (reward, terminated, info["invalid_action"], info["suffix"]) == (0.0, False, True, board)


def test_a_box_on_its_target_is_marked_and_can_leave_it_again() -> None:
    env = inside("####### #PXO__# #XO___# #######", boxes=2)
    assert env.board().splitlines()[1] == "# P X O _ _ #"
    assert move(env, "right")[4]["suffix"].splitlines()[1] == "# _ P √ _ _ #"
    assert move(env, "right")[4]["suffix"].splitlines()[1] == "# _ _ P X _ #"
    assert move(env, "left")[4]["suffix"].splitlines()[1] == "# _ P O X _ #"


def test_the_last_push_on_the_last_turn_is_a_win_and_no_truncation() -> None:
    env = inside("##### #PXO# #####", boxes=1, turns=1)
    _, *answer, info = move(env, "right")
    assert answer == [1.0, True, False]
    assert info["success"] is True


@pytest.mark.parametrize("way", ["right", "left"])
def test_the_last_turn_pays_for_the_boxes_on_targets(way: str) -> None:
    """Also where the move was blocked."""
    env = inside("###### #PXO_# #√XO_# #____# ######", boxes=3, turns=1)
    _, *answer, info = move(env, way)
    assert answer == [pytest.approx((1 + (way == "right")) / 3), True, True]
    assert info["success"] is False
    assert info.get("invalid_action", False) is (way == "left")


# -- the action format -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "action",
    ["", "up", "\\boxed{}", "\\boxed{up,up}", "\\boxed{up", "\\boxed{r\u0131ght}", "\\boxed{r\u0130ght}"],
    ids=ascii,
)
@pytest.mark.parametrize("sokoban", [Sokoban, SokobanV1])
@pytest.mark.parametrize("turn", [1, 4])
def test_without_a_move_in_a_box_the_episode_ends(sokoban: type[Sokoban], action: str, turn: int) -> None:
    env, seen = start(0, sokoban, max_turns=50)
    env.max_turns = 4
    blocked = next(way for way in WAYS if seen.after(way) is None)
    for _ in range(turn - 1):
        move(env, blocked)
    answer = env.step(action)
    assert answer[1:4] == (-0.1, True, turn == 4)
    assert answer[4] == {"success": False, "invalid_action": True, "suffix": env.board()}


@pytest.mark.parametrize("action", ["\\boxed{RIGHT}", "\\Boxed{Right}", "\\BOXED{rIGHT}"])
def test_any_case_is_read(action: str) -> None:
    assert inside("##### #PXO# #####", boxes=1).step(action)[1:4] == (1.0, True, False)


@pytest.mark.parametrize("form", [" up", "up ", "\tup\n"])
def test_v1_reads_white_space_and_v0_does_not(form: str) -> None:
    assert move(start(0)[0], form)[1:3] == (-0.1, True)
    assert move(start(0, SokobanV1)[0], form)[1] >= 0.0


def test_the_last_box_counts() -> None:
    env = inside("##### #PXO# #####", boxes=1)
    assert env.step("\\boxed{right} no, \\boxed{left}")[1] == 0.0
    assert env.step("\\boxed{left} no, \\boxed{right} \\boxed{}")[1] == 1.0


@pytest.mark.parametrize("sokoban", [Sokoban, SokobanV1])
def test_the_example_in_the_rules_is_an_action(sokoban: type[Sokoban]) -> None:
    env = sokoban(**HARD)
    rules, _ = env.reset(seed=0)
    assert env.step(rules)[1] == 0.0


# -- random play -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sokoban", [Sokoban, SokobanV1])
@pytest.mark.parametrize("kwargs", [EASY, HARD, RANDOM], ids=["easy", "hard", "random"])
def test_random_play_is_valid(sokoban: type[Sokoban], kwargs: dict[str, Any]) -> None:
    env = sokoban(**kwargs)
    for seed in range(15):
        env.reset(seed=seed)
        terminated, turns, info = False, 0, {}
        while not terminated:
            _, _, terminated, _, info = env.step(env.sample_random_action())
            turns += 1
            assert "invalid_action" not in info
        assert info["success"] or turns == env.max_turns
