"""Sudoku, one digit a turn."""

from __future__ import annotations

import re
from functools import cache

from gem_core.errors import EnvError
from gem_games._game import GOES_ON, INVALID, SOLVED, BoxedGame, Game, Move, boxed, to_be_drawn
from gem_games._sudoku_boards import SCALES, puzzle

_DRAWN = ((4, 10, 15), (9, 50, 50))
_DRAWN_V1 = ((4, 7, 15), (9, 34, 50))
"""Rows, clues and turns to draw from."""
_MIN_CLUES = {4: 4, 9: 24}
"""With fewer clues, nearly every grid has more than one solution."""


class Sudoku(Game):
    """A board of `scale` rows with one solution, to be filled within `max_turns` digits.

    Action: the last `\\boxed{row column digit}` in the text, counted from 1, with one white space between the numbers.

    | digit | reward | episode |
    | --- | --- | --- |
    | as in the solution | 1 / cells empty at the start | continues; terminated with the last cell |
    | another that breaks no rule so far | 0 | continues; the turn is used up |
    | already in the row, column or block; a filled cell; out of range | 0 | continues; the turn is used up |
    | no box | -0.1 | terminated (and truncated, if it was the last turn) |
    | on the last turn, cells left empty | as above | terminated and truncated |

    Args:
        scale: 4 or 9 rows.
        clues: how many cells are tried when a full board is emptied; those that would leave two solutions keep their
            digit. The name is upstream's: 50 of 81 leave 31 to 39 clues.
        max_turns: the limit. All three `None` draws them anew for each episode.

    Raises:
        EnvError: another scale, clues that the board does not have, no turns, or only some of the three given.
    """

    ACTION = re.compile(r"\\boxed\{(\d+)\s(\d+)\s(\d+)\}")
    FORM = boxed("row column digit")
    _drawn_from = _DRAWN

    def __init__(self, clues: int | None = 30, max_turns: int | None = 100, scale: int | None = 9) -> None:
        self._drawn = to_be_drawn(clues=clues, max_turns=max_turns, scale=scale)
        if clues is not None and max_turns is not None and scale is not None:
            self._set_limits(scale, clues, max_turns)

    def deal(self) -> None:
        """Draw a puzzle, and its size if none was given."""
        if self._drawn:
            self._set_limits(*self.rng.choice(self._drawn_from))
        self.solution, self.cells = self.puzzle()
        self._pay = 1 / self.cells.count(0)
        frame, self._places = _frame(self.scale)
        self._text = list(frame)
        for place, digit in zip(self._places, self.cells, strict=True):
            if digit:
                self._text[place] = str(digit)

    def puzzle(self) -> tuple[list[int], list[int]]:
        """A solution, and its clues with 0 for an empty cell; row by row."""
        return puzzle(self.scale, self.clues, self.rng)

    def rules(self) -> str:
        """Rules, limit and form."""
        block = round(self.scale**0.5)
        return (
            f"Solve the Sudoku: each row, each column and each {block}x{block} block holds every digit from 1 to "
            f"{self.scale} once. There is one solution. A dot is an empty cell. You have {self.max_turns} turns and "
            "fill one cell a turn: a digit of the solution stays, any other costs the turn. Put row, column and digit "
            f"in a box, for example {boxed('1 2 3')} to write 3 in row 1, column 2."
        )

    def play(self, move: re.Match[str]) -> Move | None:
        """Write a digit."""
        try:
            row, column, digit = map(int, move.groups())
        except ValueError:  # more digits than Python reads
            return None
        scale = self.scale
        if not (1 <= row <= scale and 1 <= column <= scale and 1 <= digit <= scale):
            return f"Rows, columns and digits go from 1 to {scale}.", 0.0, INVALID
        cell = (row - 1) * scale + column - 1
        if self.cells[cell]:
            return f"Row {row}, column {column} is filled already.", 0.0, INVALID
        if self.solution[cell] != digit:
            return self._wrong(cell, digit, f"{digit} in row {row}, column {column}")
        self.cells[cell] = digit
        self._text[self._places[cell]] = str(digit)
        return f"{digit} in row {row}, column {column} is right.", self._pay, GOES_ON if 0 in self.cells else SOLVED

    def board(self) -> str:
        """The digits so far, with rows and columns numbered."""
        return "".join(self._text)

    def sample_random_action(self) -> str:
        """An empty cell, and a digit that its row, column and block do not hold yet."""
        cell = self.rng.choice([cell for cell, digit in enumerate(self.cells) if not digit])
        digit = self.rng.choice(sorted(set(range(1, self.scale + 1)) - self._seen(cell)))
        row, column = divmod(cell, self.scale)
        return boxed(f"{row + 1} {column + 1} {digit}")

    def expert_action(self) -> str:
        """The digit of the solution for the first empty cell."""
        cell = self.cells.index(0)
        row, column = divmod(cell, self.scale)
        return boxed(f"{row + 1} {column + 1} {self.solution[cell]}")

    def _set_limits(self, scale: int, clues: int, turns: int) -> None:
        if scale not in SCALES or not 1 <= clues <= scale * scale or turns < 1:
            raise EnvError(
                f"cannot play scale={scale}, clues={clues} in {turns} turns: it needs scale 4 or 9, "
                "1 <= clues <= scale * scale and max_turns >= 1"
            )
        self.scale, self.clues, self.max_turns = scale, clues, turns

    def _wrong(self, cell: int, digit: int, what: str) -> Move:
        if digit in self._seen(cell):
            return f"{what} is wrong: its row, column or block has a {digit} already.", 0.0, INVALID
        return f"{what} breaks no rule so far, but it is not in the solution.", 0.0, GOES_ON

    def _seen(self, cell: int) -> set[int]:
        """The digits in the row, column and block of a cell; 0 where one is empty."""
        scale, block = self.scale, round(self.scale**0.5)
        row, column = divmod(cell, scale)
        seen = {*self.cells[row * scale : (row + 1) * scale], *self.cells[column::scale]}
        left = column // block * block
        for top in range(row // block * block, row // block * block + block):
            seen.update(self.cells[top * scale + left : top * scale + left + block])
        return seen


class SudokuV1(BoxedGame, Sudoku):
    """The same, where `clues` is the number of digits on the board at the start.

    Any white space around and between the numbers in the box is read.

    Raises:
        EnvError: as `Sudoku`; also for fewer than 4 (scale 4) or 24 (scale 9) clues, a full board, or fewer turns than
            empty cells.
    """

    ACTION = re.compile(r"(\d+)\s+(\d+)\s+(\d+)")
    _drawn_from = _DRAWN_V1

    def puzzle(self) -> tuple[list[int], list[int]]:
        """A solution, and its clues with 0 for an empty cell; row by row."""
        cells = self.scale * self.scale
        empty = cells - self.clues
        while True:
            solution, clues = puzzle(self.scale, cells, self.rng, most=empty)
            if clues.count(0) == empty:
                return solution, clues

    def _set_limits(self, scale: int, clues: int, turns: int) -> None:
        super()._set_limits(scale, clues, turns)
        fewest, cells = _MIN_CLUES[scale], scale * scale
        if not fewest <= clues < cells:
            raise EnvError(f"cannot deal {clues} clues at scale {scale}: it needs {fewest} <= clues < {cells}")
        if turns < cells - clues:
            raise EnvError(
                f"{clues} clues at scale {scale} leave {cells - clues} empty cells, too many for {turns} turns: "
                "give more clues or a larger max_turns"
            )


@cache
def _frame(scale: int) -> tuple[str, tuple[int, ...]]:
    """The text of an empty board, and where in it the cells are."""
    block = round(scale**0.5)
    numbers = [str(column) for column in range(1, scale + 1)]
    blocks = range(0, scale, block)
    lines = ["    " + "   ".join(" ".join(numbers[left : left + block]) for left in blocks)]
    for row in range(scale):
        if row and row % block == 0:
            lines.append("  |" + "+".join("-" * (2 * block + 1) for _ in blocks))
        lines.append(f"{row + 1} | " + " | ".join(" ".join("." * block) for _ in blocks))
    text = "\n".join(lines)
    return text, tuple(place for place, mark in enumerate(text) if mark == ".")
