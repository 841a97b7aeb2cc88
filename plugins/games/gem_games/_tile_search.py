"""Looking ahead in 2048 (expectimax, Michie 1966)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from typing import TypeAlias

Row: TypeAlias = tuple[int, ...]
Board: TypeAlias = tuple[Row, ...]
"""Rows of tiles from the top; 0 is an empty cell."""
Slides: TypeAlias = Mapping[str, Callable[[Board], Board]]

DEPTH = 2
"""Moves that are looked at."""
MAX_CELLS = 4
"""Empty cells in which a new tile is tried, spread over the board."""
_ALMOST_ALWAYS = 2
"""The new tile that is tried: a 4 is rare."""


def best_slide(board: Board, slides: Slides, depth: int = DEPTH) -> str | None:
    """The direction with the highest expected worth; `None` where nothing moves."""
    worth = {way: _after(moved, slides, depth) for way, moved in _moves(board, slides)}
    return max(worth, key=lambda way: worth[way]) if worth else None


def _moves(board: Board, slides: Slides) -> list[tuple[str, Board]]:
    return [(way, moved) for way, slide in slides.items() if (moved := slide(board)) != board]


def _after(board: Board, slides: Slides, depth: int) -> float:
    """The expected worth of a board on which a tile is about to appear."""
    empty = [(row, column) for row, tiles in enumerate(board) for column, tile in enumerate(tiles) if not tile]
    tried = empty[:: -(-len(empty) // MAX_CELLS)] if empty else []
    boards = [_with_tile(board, *cell) for cell in tried] or [board]
    return sum(_best(one, slides, depth - 1) for one in boards) / len(boards)


def _best(board: Board, slides: Slides, depth: int) -> float:
    moves = _moves(board, slides)
    if not moves:
        return -1e6  # the end
    if not depth:
        return max(_worth(moved) for _, moved in moves)
    return max(_after(moved, slides, depth) for _, moved in moves)


def _with_tile(board: Board, row: int, column: int) -> Board:
    tiles = [*board[row]]
    tiles[column] = _ALMOST_ALWAYS
    return (*board[:row], tuple(tiles), *board[row + 1 :])


def _worth(board: Board) -> float:
    """Empty cells, large tiles, and neighbors of similar size."""
    size = [[tile.bit_length() for tile in row] for row in board]
    lines = [*size, *zip(*size, strict=True)]
    rough = sum(abs(one - other) for line in lines for one, other in itertools.pairwise(line))
    empty = sum(row.count(0) for row in board)
    return 3.0 * empty - rough + sum(3.0**bits for row in size for bits in row) ** 0.5
