"""Sudoku boards: full grids, and puzzles with exactly one solution.

A position is a list of planes, one per digit: an integer with a bit for every cell that may hold that digit. Nine
integers are compared and narrowed at once, so that a 9x9 puzzle takes milliseconds in plain Python.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from functools import cache
from operator import eq

SCALES = (4, 9)
"""Rows of the supported boards."""

_NONE_FITS = -1


class Lattice:
    """The cells of a `scale` x `scale` board, row by row, as bits 0, 1, ... of an integer."""

    def __init__(self, scale: int) -> None:
        self.scale = scale
        self.all = (1 << scale * scale) - 1
        block = round(scale**0.5)
        places = [
            (row, column, row // block * block + column // block) for row in range(scale) for column in range(scale)
        ]
        self._keep: dict[int, int] = {}
        for cell, place in enumerate(places):
            seen = sum(1 << other for other, there in enumerate(places) if any(map(eq, place, there)))
            self._keep[1 << cell] = self.all & ~seen | 1 << cell

    def full_grid(self, rng: random.Random) -> list[int]:
        """The planes of a random full grid."""
        digits = rng.sample(range(self.scale), self.scale)
        below = self.all & ~((1 << self.scale) - 1)
        planes = [below] * self.scale
        for column, digit in enumerate(digits):
            planes[digit] |= 1 << column
        grid = self._solve(planes, rng)
        assert grid is not None, "every first row can be completed"
        return grid

    def thin_out(self, solution: Sequence[int], cells: Iterable[int], most: int) -> int:
        """Empty cells of a full grid, in this order, while it stays the only solution; which ones, as bits.

        A cell that would leave a second solution keeps its digit. Stops when `most` are empty.
        """
        given = [*solution]
        fits = [self._fill(self.all, plane) for plane in given]
        empty = 0
        for cell in cells:
            if empty.bit_count() == most:
                break
            digit = next(digit for digit, plane in enumerate(given) if plane & cell)
            kept = given[digit], fits[digit]
            given[digit] ^= cell
            fits[digit] = self._fill(self.all, given[digit])
            tried = empty | cell
            planes = [fit & (plane | tried) for fit, plane in zip(fits, given, strict=True)]
            if self._is_forced(planes, digit, cell, self.all & ~tried):
                empty = tried
            else:
                given[digit], fits[digit] = kept
        return empty

    def _is_forced(self, planes: list[int], right: int, cell: int, filled: int) -> bool:
        """Whether a solution has the digit `right` in `cell`, and none has another."""
        self._narrow(planes, filled, until=cell)
        wrong = [digit for digit, plane in enumerate(planes) if plane & cell and digit != right]
        return not any(self._solve(_with(planes, digit, cell)) for digit in wrong)

    def _solve(self, planes: list[int], rng: random.Random | None = None) -> list[int] | None:
        """A full grid within these planes, changed in place; `rng` chooses the branch to try first."""
        undecided = self._narrow(planes)
        if undecided == _NONE_FITS:
            return None
        if not undecided:
            return planes
        cell = _fewest(planes, undecided)
        digits = [digit for digit, plane in enumerate(planes) if plane & cell]
        if rng is not None:
            rng.shuffle(digits)
        for digit in digits:
            grid = self._solve(_with(planes, digit, cell), rng)
            if grid is not None:
                return grid
        return None

    def _narrow(self, planes: list[int], filled: int = 0, until: int = 0) -> int:
        """Fill cells with one digit left, in place, until none is left or `until` is one of them.

        What the cells already `filled` hold is taken to be nowhere that they see. Returns the undecided cells, or
        `_NONE_FITS` where a cell has no digit left.
        """
        while True:
            once = twice = 0
            for plane in planes:
                twice |= once & plane
                once |= plane
            if once != self.all:
                return _NONE_FITS
            single = once & ~twice & ~filled
            if not single or single & until:
                return twice
            filled |= single
            for digit, plane in enumerate(planes):
                planes[digit] = self._fill(plane, plane & single)

    def _fill(self, plane: int, cells: int) -> int:
        """The plane of a digit, once it stands in `cells`."""
        while cells:
            cell = cells & -cells
            plane &= self._keep[cell]
            cells ^= cell
        return plane


def _with(planes: Sequence[int], digit: int, cell: int) -> list[int]:
    narrowed = [plane & ~cell for plane in planes]
    narrowed[digit] |= cell
    return narrowed


def _fewest(planes: Sequence[int], undecided: int) -> int:
    """The first undecided cell with two digits left; the first of all where there is none."""
    once = twice = thrice = 0
    for plane in planes:
        thrice |= twice & plane
        twice |= once & plane
        once |= plane
    cells = undecided & ~thrice or undecided
    return cells & -cells


@cache
def lattice(scale: int) -> Lattice:
    """The lattice of a board of `scale` rows; it is never changed, so all share it."""
    return Lattice(scale)


def puzzle(scale: int, attempts: int, rng: random.Random, most: int | None = None) -> tuple[list[int], list[int]]:
    """A full grid, and the same with cells emptied (0) while one solution is left; row by row.

    Args:
        scale: 4 or 9 rows.
        attempts: how many cells are tried; one that would leave two solutions keeps its digit.
        rng: draws the grid and the cells.
        most: stop at this number of empty cells.
    """
    board = lattice(scale)
    solution = board.full_grid(rng)
    cells = range(scale * scale)
    tried = [1 << cell for cell in rng.sample(cells, attempts)]
    empty = board.thin_out(solution, tried, len(cells) if most is None else most)
    grid = [1 + next(digit for digit, plane in enumerate(solution) if plane >> cell & 1) for cell in cells]
    return grid, [0 if empty >> cell & 1 else digit for cell, digit in zip(cells, grid, strict=True)]
