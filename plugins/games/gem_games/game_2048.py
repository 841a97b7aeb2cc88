"""2048: slide and merge equal tiles until one of them shows the target."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache

from gem_core.errors import EnvError
from gem_games._game import GOES_ON, INVALID, LOST, SOLVED, BoxedGame, Game, Move, boxed, to_be_drawn
from gem_games._tile_search import Board, Row, best_slide

_RANDOM = ((16, 20), (32, 30), (64, 50))
"""Targets and turns to draw from."""


class Game2048(Game):
    """Reach the tile `target_tile` within `max_turns` turns.

    A move slides all tiles to one side and merges equal neighbours, nearest to that side first, each tile once. Then a
    new tile appears in a random empty cell: 2, or 4 with a probability of 0.1. Two tiles are there at the start.

    Action: the last `\\boxed{up}`, `down`, `left` or `right` in the text, in any case.

    | move | reward | episode |
    | --- | --- | --- |
    | the largest tile grew | doublings / doublings from the first largest tile to the target, so that the sum is 1 | \
continues; terminated at the target |
    | other | 0 | continues; terminated if no further move is possible |
    | nothing would move | 0 | continues; the turn is used up |
    | no box | -0.1 | terminated (and truncated, if it was the last turn) |
    | not solved and not stuck on the last turn | as above | terminated and truncated |

    A 4 that appears on a board of 2s counts as growth in the next move. `-v0-hard` and `-v0-extreme-hard` cannot be
    solved, see `Game2048V1`.

    Args:
        target_tile, max_turns: goal and limit; both `None` draws one of three pairs for each episode.
        board_size: rows, and columns.

    Raises:
        EnvError: a target that is not a power of two from 8, a board smaller than 2x2, fewer than one turn, or only one
            of target and turns given.
    """

    ACTION = re.compile(r"\\boxed\{(up|down|left|right)\}", re.IGNORECASE)
    FORM = boxed("direction")

    def __init__(self, target_tile: int | None = 2048, max_turns: int | None = 1000, board_size: int = 4) -> None:
        self._drawn = to_be_drawn(target_tile=target_tile, max_turns=max_turns)
        if board_size < 2:
            raise EnvError(f"a board needs board_size >= 2, not {board_size}")
        self.board_size = board_size
        if target_tile is not None and max_turns is not None:
            self.set_goal(target_tile, max_turns)

    def set_goal(self, target: int, turns: int) -> None:
        """Set target and limit. Raises `EnvError` where they make no game."""
        if target < 8 or target & (target - 1) or turns < 1:
            raise EnvError(
                f"cannot reach tile {target} in {turns} turns: it needs a power of two >= 8 and max_turns >= 1"
            )
        self.target_tile, self.max_turns = target, turns

    def deal(self) -> None:
        """Put two tiles on the board, and draw the goal if none was given."""
        if self._drawn:
            self.set_goal(*self.rng.choice(_RANDOM))
        self.tiles: Board = ((0,) * self.board_size,) * self.board_size
        self._add_tile()
        self._add_tile()
        self.first = self.largest = _largest(self.tiles)

    def rules(self) -> str:
        """Goal, limit, rule and form."""
        return (
            f"2048: reach the tile {self.target_tile} in {self.max_turns} moves. A move slides all tiles up, down, "
            "left or right; two equal tiles that meet become one of twice the value. Then a 2 or a 4 appears in an "
            f"empty cell. Put your move in a box, for example {boxed('left')}.\n"
        )

    def play(self, move: re.Match[str]) -> Move | None:
        """Slide the tiles."""
        direction = move[1].lower()
        slide = _SLIDES.get(direction)  # None if case folding accepted a dotless i
        moved = slide(self.tiles) if slide else self.tiles
        if moved == self.tiles:
            return f"Nothing moves {direction}.", 0.0, INVALID
        self.tiles = moved
        reward = self._grow()
        self._add_tile()
        if self.largest >= self.target_tile:
            return f"{self.target_tile} is reached.", reward, SOLVED
        if _stuck(self.tiles):
            return "No move is left.", reward, LOST
        return f"Moved {direction}.", reward, GOES_ON

    def pay(self, progress: float, solved: bool) -> float:
        """Reward of a move, from its part of the way to the target and whether it reached it."""
        return progress

    def board(self) -> str:
        """The tiles, `.` for empty cells."""
        width = len(str(self.target_tile))
        return "\n".join([_text(row, width) for row in self.tiles])

    def sample_random_action(self) -> str:
        """A direction in which something moves."""
        moves = [direction for direction, slide in _SLIDES.items() if slide(self.tiles) != self.tiles]
        return boxed(self.rng.choice(moves or [*_SLIDES]))  # none is left only after the end

    def expert_action(self) -> str:
        """The direction that two moves of looking ahead find best. It is not proved to be."""
        return boxed(best_slide(self.tiles, _SLIDES) or "up")  # nothing moves only after the end

    def _grow(self) -> float:
        largest = _largest(self.tiles)
        if largest <= self.largest:
            return 0.0
        doublings = largest.bit_length() - self.largest.bit_length()
        self.largest = largest
        way = self.target_tile.bit_length() - self.first.bit_length()
        return self.pay(doublings / way, largest >= self.target_tile)

    def _add_tile(self) -> None:
        empty = [(row, col) for row, tiles in enumerate(self.tiles) for col, tile in enumerate(tiles) if not tile]
        row, col = self.rng.choice(empty)
        tiles = [*self.tiles[row]]
        tiles[col] = 2 if self.rng.random() < 0.9 else 4
        self.tiles = (*self.tiles[:row], tuple(tiles), *self.tiles[row + 1 :])


class Game2048V1(BoxedGame, Game2048):
    """The same, with targets that can be reached, and half of the pay for reaching them.

    - The sum of all tiles is the sum of those that appeared: before the last of T moves T + 1 tiles of 2 or 4,
      2.2 (T + 1) on average and 4 (T + 1) at most. A target above the average is refused, because most games could
      not be won. The `-v0-` targets 512 in 50 turns and 2048 in 100 are above the maximum, 204 and 404.
    - A board of n cells never holds a tile above 2 ** (n + 1), so such a target is refused too.
    - Doublings pay half as much as in `-v0-`, and the target pays 0.5. The sum is still 1, but reaching half of the
      target tile no longer pays most of it.
    - The box accepts white space.

    A player that looks one move ahead reached 64 in 50 turns in 97 % of games, 128 in 90 in 93 %, 256 in 170 in 87 %;
    random moves did in 37 %, 23 % and 11 %.
    """

    ACTION = re.compile(r"(up|down|left|right)", re.IGNORECASE)

    def set_goal(self, target: int, turns: int) -> None:
        """Set target and limit. Raises `EnvError` where the target is out of reach."""
        super().set_goal(target, turns)
        if 5 * target > 11 * (turns + 1) or target.bit_length() > self.board_size**2 + 2:
            raise EnvError(
                f"tile {target} is out of reach in {turns} turns on {self.board_size}x{self.board_size} cells: it "
                "needs target_tile <= 2.2 * (max_turns + 1) and <= 2 ** (board_size ** 2 + 1)"
            )

    def pay(self, progress: float, solved: bool) -> float:
        """Half for the way, half for the target."""
        return 0.5 * progress + 0.5 * solved


@lru_cache(maxsize=1 << 16)
def _merged(row: Row) -> Row:
    """A row after its tiles slid to the left."""
    merged: list[int] = []
    before = 0  # the tile that the next one may merge with
    for tile in filter(None, row):
        if tile == before:
            merged[-1] = 2 * tile
            before = 0
        else:
            merged.append(tile)
            before = tile
    return (*merged, *[0] * (len(row) - len(merged)))


@lru_cache(maxsize=1 << 16)
def _merged_back(row: Row) -> Row:
    """A row after its tiles slid to the right."""
    return _merged(row[::-1])[::-1]


@lru_cache(maxsize=1 << 16)
def _text(row: Row, width: int) -> str:
    return " ".join(f"{tile or '.':>{width}}" for tile in row)


_SLIDES: dict[str, Callable[[Board], Board]] = {
    "up": lambda board: _turned(map(_merged, _turned(board))),
    "down": lambda board: _turned(map(_merged_back, _turned(board))),
    "left": lambda board: tuple(map(_merged, board)),
    "right": lambda board: tuple(map(_merged_back, board)),
}


def _turned(rows: Iterable[Row]) -> Board:
    """The columns as rows."""
    return tuple(zip(*rows, strict=True))


def _largest(board: Board) -> int:
    return max(map(max, board))


def _stuck(board: Board) -> bool:
    """No cell is empty and no neighbours are equal."""
    return all(map(all, board)) and all(_merged(line) == line for line in (*board, *_turned(board)))
