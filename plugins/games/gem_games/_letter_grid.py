"""Words that cross on a square of letters, for crosswords and word searches."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

EMPTY = ""


class Line(NamedTuple):
    """The place of a word: its first cell, and its last one to the right or below."""

    word: str
    row: int
    column: int
    down: bool

    @property
    def end(self) -> tuple[int, int]:
        """Row and column of the last letter."""
        reach = len(self.word) - 1
        return (self.row + reach, self.column) if self.down else (self.row, self.column + reach)


class Grid:
    """A square with sides of one and a half times the longest word, and the words on it.

    Longest word first, each across or down as drawn: the first in the middle, another where it crosses one of the
    other direction (drawn among all such places), or else in the first free place. A word without a place is left out.

    Args:
        words: what to place, without repetitions.
        rng: draws directions and places.
    """

    def __init__(self, words: Sequence[str], rng: random.Random) -> None:
        words = sorted(words, key=len, reverse=True)
        self.size = round(len(words[0]) * 1.5)
        self.cells = [EMPTY] * self.size**2
        """Row by row: a letter, or `EMPTY`."""
        self.lines: list[Line] = []
        """The words, longest first."""
        directions = [rng.random() < 0.5 for _ in words]
        for word, down in zip(words, directions, strict=True):
            line = self._place(word, down, rng)
            if line is not None:
                self.cells[self._run(line)] = word
                self.lines.append(line)

    def _place(self, word: str, down: bool, rng: random.Random) -> Line | None:
        if not self.lines:
            middle, start = self.size // 2, (self.size - len(word)) // 2
            return Line(word, start, middle, down) if down else Line(word, middle, start, down)
        crossings = self._crossings(word, down)
        while crossings:  # in random order, without shuffling all places to find the first that fits
            chosen = int(rng.random() * len(crossings))
            crossings[chosen], crossings[-1] = crossings[-1], crossings[chosen]
            if self._fits(line := crossings.pop()):
                return line
        anywhere = (Line(word, row, column, down) for row in range(self.size) for column in range(self.size))
        return next(filter(self._fits, anywhere), None)

    def _crossings(self, word: str, down: bool) -> list[Line]:
        found: list[Line] = []
        for placed in self.lines:
            if placed.down is down:
                continue
            for there, letter in enumerate(placed.word):
                here = word.find(letter)
                while here >= 0:
                    row, column = (-here, there) if down else (there, -here)
                    found.append(Line(word, placed.row + row, placed.column + column, down))
                    here = word.find(letter, here + 1)
        return found

    def _fits(self, line: Line) -> bool:
        word, row, column, down = line
        if row < 0 or column < 0 or (row if down else column) + len(word) > self.size:
            return False
        cells = self.cells[self._run(line)]
        return not any(cells) or all(cell in (EMPTY, letter) for cell, letter in zip(cells, word, strict=True))

    def _run(self, line: Line) -> slice:
        """The cells of a word."""
        word, row, column, down = line
        step = self.size if down else 1
        start = row * self.size + column
        return slice(start, start + step * (len(word) - 1) + 1, step)


def drawn(marks: Sequence[str], size: int) -> str:
    """A square of marks, each three characters wide, with numbers from 0 on its rows and columns."""
    columns, labels = _numbers(size)
    rows = [(labels[row] + "".join(marks[row * size : (row + 1) * size])).rstrip() for row in range(size)]
    return "\n".join((columns, *rows))


@cache
def _numbers(size: int) -> tuple[str, list[str]]:
    """The line above the columns, and the label of each row."""
    columns = "   " + " ".join(f"{number:>2}" for number in range(size))
    return columns, [f"{row:>2} " for row in range(size)]


def read_numbers(digits: Sequence[str]) -> list[int] | None:
    """The numbers, or `None` where one has more digits than Python reads."""
    try:
        return [int(each) for each in digits]
    except ValueError:
        return None
