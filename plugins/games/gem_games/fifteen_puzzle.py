"""The fifteen puzzle: slide numbered tiles into order."""

from __future__ import annotations

import re
from functools import cache, partial
from operator import eq
from typing import TypeAlias

from gem_core.errors import EnvError
from gem_games._game import GOES_ON, INVALID, SOLVED, BoxedGame, Game, Move, boxed, to_be_drawn
from gem_games._routes import Routes

_DRAWN = ((2, 10), (3, 20), (4, 50))
"""Rows and turns to draw from."""


class FifteenPuzzle(Game):
    """A square board of `num_rows` rows with one gap, to be put in order within `max_turns` slides.

    Action: the last `\\boxed{up}` (`down`, `left`, `right`) in the text, in lower case: the direction in which a tile
    slides into the gap. The order is 1, 2, ... row by row with the gap last.

    | slide | reward | episode |
    | --- | --- | --- |
    | puts the board in order | 1 | terminated |
    | another | 0 | continues |
    | no tile on that side of the gap | 0 | continues; the turn is used up |
    | no box | -0.1 | terminated (and truncated, if it was the last turn) |
    | on the last turn, not in order | share of correct cells, the gap included | terminated and truncated |

    Boards are drawn as upstream draws them: every arrangement is equally likely. Half of the boards cannot be put in
    order, and a few are in order already; an episode on such a board continues like any other.

    Args:
        num_rows, max_turns: the size and the limit; both `None` draws one of (2, 10), (3, 20) and (4, 50) for each
            episode.

    Raises:
        EnvError: fewer than two rows or one turn, or only one of the two given.
    """

    ACTION = re.compile(r"\\boxed\{(up|down|left|right)\}")
    FORM = boxed("up") + ", " + boxed("down") + ", " + boxed("left") + " or " + boxed("right")

    def __init__(self, max_turns: int | None = 20, num_rows: int | None = 2) -> None:
        self._drawn = to_be_drawn(max_turns=max_turns, num_rows=num_rows)
        if num_rows is not None and max_turns is not None:
            self._set_limits(num_rows, max_turns)

    def deal(self) -> None:
        """Draw a board, and its size if none was given."""
        if self._drawn:
            self._set_limits(*self.rng.choice(_DRAWN))
        self._ordered = [*_ordered(self.num_rows)]
        self.tiles = [*self._ordered]
        self.gap = len(self.tiles) - 1
        self.shuffle()

    def shuffle(self) -> None:
        """Shuffle the tiles, which are in order."""
        self.rng.shuffle(self.tiles)
        self.gap = self.tiles.index(self._ordered[-1])

    def rules(self) -> str:
        """Goal, limit and form."""
        return (
            f"Slide the tiles into order: 1 to {self.num_rows**2 - 1} row by row, the gap {self._ordered[-1]} in the "
            f"bottom right corner, within {self.max_turns} moves. A move slides a tile next to the gap into it: up, "
            f"down, left or right is the way the tile goes. Put it in a box, for example {boxed('up')} to slide the "
            "tile below the gap up."
        )

    def play(self, move: re.Match[str]) -> Move | None:
        """Slide a tile."""
        way = move[1].lower()
        tile = _slides(self.num_rows)[way][self.gap]
        if tile is None:
            return f"There is no tile to slide {way}.", 0.0, INVALID
        self._slide(tile)
        if self.tiles == self._ordered:
            return "The tiles are in order.", 1.0, SOLVED
        return f"You slid a tile {way}.", 0.0, GOES_ON

    def board(self) -> str:
        """The tiles in rows."""
        return _frame(self.num_rows) % tuple(self.tiles)

    def consolation(self) -> float:
        """The share of correct cells."""
        return sum(map(eq, self.tiles, self._ordered)) / len(self.tiles)

    def sample_random_action(self) -> str:
        """One of the slides that the gap allows."""
        return boxed(
            self.rng.choice([way for way, tiles in _slides(self.num_rows).items() if tiles[self.gap] is not None])
        )

    def expert_action(self) -> str:
        """The next slide of a way into order, a shortest one where it is found in time.

        If the board cannot be put in order, or no way was found, the slide that leaves the most tiles near their cells.
        """
        tiles = tuple(map(self._ordered.index, self.tiles))
        way = _routes(self.num_rows).move(tiles) if _has_order(self.num_rows, tiles) else None
        if way is None:
            way = min(_after(self.num_rows, tiles), key=lambda step: (_left(self.num_rows, step[1]), step[0]))[0]
        return boxed(way)

    def _set_limits(self, rows: int, turns: int) -> None:
        if rows < 2 or turns < 1:
            raise EnvError(f"cannot play {rows} rows in {turns} turns: it needs num_rows >= 2 and max_turns >= 1")
        self.num_rows, self.max_turns = rows, turns

    def _slide(self, tile: int) -> None:
        tiles, gap = self.tiles, self.gap
        tiles[gap], tiles[tile] = tiles[tile], tiles[gap]
        self.gap = tile


class FifteenPuzzleV1(BoxedGame, FifteenPuzzle):
    """The same, with boards that can be won: out of order, and put in order by at most `max_turns` slides.

    A board is the ordered one after a random walk of at least half that many slides, and at most that many, none of
    which undoes the one before. The box also accepts upper case and white space.
    """

    ACTION = re.compile(r"(up|down|left|right)", re.IGNORECASE | re.ASCII)

    def shuffle(self) -> None:
        """Slide tiles at random until they are out of order."""
        most = min(self.max_turns, 10 * len(self.tiles))  # enough to mix a board, even with a very large turn limit
        while self.tiles == self._ordered:
            before = None
            for _ in range(self.rng.randint((most + 1) // 2, most)):
                gap = self.gap
                near = [tiles[gap] for tiles in _slides(self.num_rows).values()]
                self._slide(self.rng.choice([tile for tile in near if tile is not None and tile != before]))
                before = gap


Tiles: TypeAlias = tuple[int, ...]
"""The number of each tile from 0, row by row; the last is the gap."""


@cache
def _routes(rows: int) -> Routes[Tiles]:
    return Routes(partial(_after, rows), partial(_left, rows))


def _after(rows: int, tiles: Tiles) -> list[tuple[str, Tiles]]:
    """The slides that the gap allows, and the board after each."""
    gap = tiles.index(rows * rows - 1)
    found: list[tuple[str, Tiles]] = []
    for way, cells in _slides(rows).items():
        if (tile := cells[gap]) is not None:
            after = [*tiles]
            after[gap], after[tile] = after[tile], after[gap]
            found.append((way, tuple(after)))
    return found


def _has_order(rows: int, tiles: Tiles) -> bool:
    """Whether a board can be put in order: a slide swaps two tiles, and moves the gap by one."""
    swaps = sum(one > other for at, one in enumerate(tiles) for other in tiles[at + 1 :])
    gap = tiles.index(rows * rows - 1)
    return (swaps + 2 * (rows - 1) - gap // rows - gap % rows) % 2 == 0


def _left(rows: int, tiles: Tiles) -> int:
    """The slides that are left at least: each tile's way, and two for a tile that has to let another one pass."""
    if tiles == tuple(range(rows * rows)):
        return 0
    found = 0
    for cell, tile in enumerate(tiles):
        if tile != rows * rows - 1:
            found += abs(cell // rows - tile // rows) + abs(cell % rows - tile % rows)
    for row in range(rows):
        line = [
            tile for tile in tiles[row * rows : (row + 1) * rows] if tile // rows == row and tile != rows * rows - 1
        ]
        found += 2 * any(line[at] > line[at + 1] for at in range(len(line) - 1))
    return max(found, 1)


@cache
def _ordered(rows: int) -> tuple[str, ...]:
    """The tiles in order, each as wide as the widest."""
    width = max(2, len(str(rows * rows - 1)))
    return *(str(tile).rjust(width) for tile in range(1, rows * rows)), "_" * width


@cache
def _frame(rows: int) -> str:
    """The board's text, with a `%s` for every tile."""
    return "\n".join([" ".join(["%s"] * rows)] * rows)


@cache
def _slides(rows: int) -> dict[str, list[int | None]]:
    """For each direction and each cell of the gap: the cell of the tile that slides, if there is one."""
    ways = {"up": (1, 0), "down": (-1, 0), "left": (0, 1), "right": (0, -1)}
    cells = [(row, column) for row in range(rows) for column in range(rows)]
    return {
        way: [
            (row + down) * rows + column + right if 0 <= row + down < rows and 0 <= column + right < rows else None
            for row, column in cells
        ]
        for way, (down, right) in ways.items()
    }
