"""Ways to solve a room of Sokoban."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from functools import lru_cache
from typing import TypeAlias

from gem_games._routes import Routes

Cells: TypeAlias = frozenset[int]
Position: TypeAlias = tuple[int, Cells]
"""The player's cell, and those of the boxes."""


@lru_cache(maxsize=64)
def routes(width: int, floor: Cells, targets: Cells) -> Routes[Position]:
    """The ways from the positions of a room.

    Args:
        width: cells in a row; cells are numbers, row by row, and walls are all around.
        floor: every cell that is not a wall.
        targets: where boxes belong.
    """
    ways = {"up": -width, "down": width, "left": -1, "right": 1}
    far = _pushes(floor, targets, tuple(ways.values()))

    def steps(position: Position) -> Iterable[tuple[str, Position]]:
        player, boxes = position
        for way, step in ways.items():
            there, beyond = player + step, player + 2 * step
            if there in boxes:
                if beyond in far and beyond not in boxes:
                    yield way, (there, boxes - {there} | {beyond})
            elif there in floor:
                yield way, (there, boxes)

    def left(position: Position) -> int:
        return sum(far.get(box, 0) for box in position[1])

    return Routes(steps, left)


def _pushes(floor: Cells, targets: Cells, ways: tuple[int, ...]) -> dict[int, int]:
    """The pushes from each cell to the nearest target without other boxes. Other cells have no way."""
    found = dict.fromkeys(targets, 0)
    waiting = deque(targets)
    while waiting:
        cell = waiting.popleft()
        for step in ways:
            before, pusher = cell - step, cell - 2 * step
            if before in floor and pusher in floor and before not in found:
                found[before] = found[cell] + 1
                waiting.append(before)
    return found
