"""Sokoban rooms that can be solved: dug by a random walk, then played backwards from the goal.

Cell `row * width + column` is a bit of an integer, and a step is a shift by 1 or by the width. The outermost cells are
walls, so that no step leaves the room or wraps around to another row.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from gem_core.errors import EnvError

_TURN = 0.35
"""How often the walk draws a new direction."""
_WAYS = ((-1, 0), (1, 0), (0, -1), (0, 1))
_SHAPES = (
    *(((0, 0), way, (-way[0], -way[1])) for way in ((0, 1), (1, 0))),
    *(((0, 0), (row, 0), (0, column)) for row in (-1, 1) for column in (-1, 1)),
    *(((0, 0), (row, 0), (0, row), (row, row)) for row in (-1, 1)),
)
"""Shapes dug in one step, as rows and columns relative to the walk: lines, corners and squares."""
FLOOR_PER_BOX = 4
"""A room with fewer cells than this for each box is dug anew."""
_ROOMS = 1000
"""Rooms to try before giving up; the usual sizes need only a few."""
_PULLS_PER_BOX = 3
"""Limit on the pulls of a game that is played backwards, per box."""
_KEPT = 20
"""Positions to keep for each number of pulls."""


@dataclass(frozen=True)
class Room:
    """A room at the start of a game; cells are numbers, `row * width + column`."""

    height: int
    width: int
    floor: frozenset[int]
    """Every cell that is not a wall, including those under targets, boxes and the player."""
    targets: frozenset[int]
    boxes: frozenset[int]
    player: int
    pushes: tuple[tuple[int, int], ...]
    """A solution: from where to where a box is pushed, in order."""


@dataclass(frozen=True)
class _Position:
    """A position of a game played backwards, and how it came about."""

    boxes: int
    player: int
    parent: _Position | None = None
    pull: tuple[int, int] = (0, 0)


def draw_room(height: int, width: int, boxes: int, rng: random.Random, most_moves: int | None = None) -> Room:
    """A connected room in which `boxes` boxes, none of them on a target, can be pushed onto as many targets.

    Args:
        height, width: of the room, walls included.
        boxes: their number.
        rng: draws the room.
        most_moves: moves in which it can be solved.

    Raises:
        EnvError: no such room was found.
    """
    for _ in range(_ROOMS):
        floor = _dig(height, width, rng)
        if floor.bit_count() < FLOOR_PER_BOX * boxes:
            continue
        goal, position = _play_backwards(floor, width, boxes, rng)
        # Later positions are harder. If one takes too many moves, an earlier one may not.
        while position is not None:
            if not (position.boxes | position.player) & goal:
                pushes = _pushes(position)
                moves = _moves(position, pushes, floor, width)
                if most_moves is None or moves <= most_moves:
                    return _room((height, width), floor, goal, position, pushes)
            position = position.parent
    raise EnvError(
        f"found no room of {height}x{width} for {boxes} boxes in {_ROOMS} tries: ask for fewer boxes, a larger room "
        "or more turns"
    )


def _dig(height: int, width: int, rng: random.Random) -> int:
    """The floor that a random walk leaves."""
    way = rng.choice(_WAYS)
    row, column = rng.randrange(1, height - 1), rng.randrange(1, width - 1)
    floor = 0
    for _ in range(int(1.7 * (height + width))):
        if rng.random() < _TURN:
            way = rng.choice(_WAYS)
        row = min(max(row + way[0], 1), height - 2)
        column = min(max(column + way[1], 1), width - 2)
        for down, right in rng.choice(_SHAPES):
            floor |= 1 << (row + down) * width + column + right
    inner_row = (1 << width - 1) - 2
    return floor & sum(inner_row << inner * width for inner in range(1, height - 1))


def _play_backwards(floor: int, width: int, count: int, rng: random.Random) -> tuple[int, _Position | None]:
    """Put boxes on random targets and pull them away, breadth first by the number of pulls.

    A few positions are kept for each number of pulls, none of them twice. Returns the targets and, of the positions
    where no box and no player stands on a target, one with the most pulls; `None` if there is no such position.
    """
    *targets, player = rng.sample(_cells(floor), count + 1)
    goal = sum(1 << target for target in targets)
    layer = [_Position(goal, 1 << player)]
    seen: set[tuple[int, int]] = set()
    last = None
    for _ in range(_PULLS_PER_BOX * count):
        layer = [after for before in layer for after in _pulled(before, floor, width, seen)]
        layer = rng.sample(layer, min(_KEPT, len(layer)))
        good = [position for position in layer if not (position.boxes | position.player) & goal]
        last = rng.choice(good) if good else last
    return goal, last


def _pulled(position: _Position, floor: int, width: int, seen: set[tuple[int, int]]) -> Iterator[_Position]:
    """The positions after one more pull; none if the present position was seen before."""
    boxes, free = position.boxes, floor & ~position.boxes
    *_, reached = _walk(position.player, free, width)
    if (boxes, reached) in seen:
        return
    seen.add((boxes, reached))
    for step in (1, width):
        # The player stands next to the box, on the side it is pulled to, and steps back once more.
        pulls = [(cell, cell + step) for cell in _cells(boxes & reached >> step & free >> 2 * step)]
        pulls += [(cell, cell - step) for cell in _cells(boxes & reached << step & free << 2 * step)]
        for before, after in pulls:
            yield _Position(boxes ^ (1 << before | 1 << after), 1 << 2 * after - before, position, (before, after))


def _room(size: tuple[int, int], floor: int, goal: int, start: _Position, pushes: tuple[tuple[int, int], ...]) -> Room:
    return Room(
        *size,
        floor=frozenset(_cells(floor)),
        targets=frozenset(_cells(goal)),
        boxes=frozenset(_cells(start.boxes)),
        player=start.player.bit_length() - 1,
        pushes=pushes,
    )


def _pushes(position: _Position) -> tuple[tuple[int, int], ...]:
    """The pulls that led here, undone in turn."""
    pushes: list[tuple[int, int]] = []
    while position.parent is not None:
        pushes.append((position.pull[1], position.pull[0]))
        position = position.parent
    return tuple(pushes)


def _moves(start: _Position, pushes: Iterable[tuple[int, int]], floor: int, width: int) -> int:
    """Steps of a player who makes these pushes and goes the shortest way in between."""
    boxes, player, moves = start.boxes, start.player, 0
    for before, after in pushes:
        behind = 1 << 2 * before - after
        moves += 1 + next(
            steps for steps, reached in enumerate(_walk(player, floor & ~boxes, width)) if reached & behind
        )
        boxes ^= 1 << before | 1 << after
        player = 1 << before
    return moves


def _walk(player: int, free: int, width: int) -> Iterator[int]:
    """The cells that the player reaches in at most 0, 1, 2, ... steps."""
    reached, before = player, 0
    while reached != before:
        yield reached
        before = reached
        reached = (reached | reached << 1 | reached >> 1 | reached << width | reached >> width) & free


def _cells(mask: int) -> list[int]:
    """The numbers of the bits that are set, in order."""
    cells: list[int] = []
    while mask:
        cells.append((mask & -mask).bit_length() - 1)
        mask &= mask - 1
    return cells
