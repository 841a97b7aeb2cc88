"""Minesweeper: open every cell that hides no mine."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import ClassVar, TypeAlias

from gem_core.errors import EnvError
from gem_games._game import GOES_ON, INVALID, LOST, SOLVED, BoxedGame, Game, Move, boxed, to_be_drawn
from gem_games._mine_odds import odds

CLOSED, FLAG = ".", "F"
SURE = 1 - 1e-9
"""The chance at which the expert flags a mine."""

_Cells: TypeAlias = tuple[int, ...]


class Minesweeper(Game):
    """A board of `rows` x `cols` cells with `num_mines` mines, to be cleared within `max_turns` turns.

    The mines are laid at the first `reveal`, never in that cell or next to it. An open cell shows how many of the cells
    around it hide mines; a 0 opens them all, except flagged ones. Rows and columns count from 0; cells are `.` closed,
    `F` flagged, or a number.

    Action: the last `\\boxed{reveal row column}` or `\\boxed{flag row column}` in the text, words in any case, one
    character of white space between them. `flag` sets a flag or removes it.

    | move | reward | episode |
    | --- | --- | --- |
    | reveal a closed cell without a mine | cells opened / (cells - num_mines) | continues; terminated if solved |
    | reveal a mine, flagged or not | 0 | terminated |
    | flag a closed cell | 0 | continues |
    | reveal an open cell or a flag on no mine; flag an open cell | 0 | continues; the turn is used up |
    | a cell outside the board, another word | 0 | continues; the turn is used up |
    | no box | -0.1 | terminated (and truncated, if it was the last turn) |
    | not solved on the last turn | as above | terminated and truncated |

    It is solved by a `reveal` after which all safe cells are open and all mines flagged. Flagging a mine later
    does not solve it: such an episode pays 1 and continues until its turns are used up. `-v1-` fixes this.

    Args:
        rows, cols, num_mines, max_turns: board and limit; all `None` draws them anew for each episode: 5 to 8 rows and
            as many columns, a fifth of the cells mined, a turn for each cell.

    Raises:
        EnvError: no mine, more than are sure to fit around the first cell, fewer than one turn, or only some of
            the four given.
    """

    ACTION = re.compile(r"\\boxed\{([a-zA-Z]+)\s(\d+)\s(\d+)\}")
    FORM = f"{boxed('reveal row column')} or {boxed('flag row column')}"
    needs_flags: ClassVar[bool] = True
    """Whether all mines have to be flagged."""
    GOAL: ClassVar[str] = "You win by opening the last cell without a mine when all mines are flagged."

    def __init__(
        self, rows: int | None = 8, cols: int | None = 8, num_mines: int | None = 10, max_turns: int | None = 20
    ) -> None:
        self._drawn = to_be_drawn(rows=rows, cols=cols, num_mines=num_mines, max_turns=max_turns)
        if rows is not None and cols is not None and num_mines is not None and max_turns is not None:
            self._set_size(rows, cols, num_mines, max_turns)

    def deal(self) -> None:
        """Close all cells, and draw the size if none was given."""
        if self._drawn:
            side = self.rng.randint(5, 8)
            self._set_size(side, side, side * side // 5, side * side)
        self.view = [CLOSED] * (self.rows * self.cols)
        self.flags: set[int] = set()
        self.mines: frozenset[int] = frozenset()
        self.safe_left = self._safe

    def rules(self) -> str:
        """Size, limit, goal, signs and form."""
        row, col = self.rng.randrange(self.rows), self.rng.randrange(self.cols)
        return (
            f"Minesweeper: {self.num_mines} mines in {self.rows} rows and {self.cols} columns, {self.max_turns} turns. "
            f"{self.GOAL} Opening a mine loses. "
            "Rows and columns count from 0. A cell is . closed, F flagged, or the number of mines in the cells around "
            "it. There is no mine in or next to the cell that you open first. "
            f"Put your move in a box: {boxed(f'reveal {row} {col}')} opens the cell in row {row}, column {col}; "
            f"{boxed(f'flag {row} {col}')} sets or removes a flag there.\n"
        )

    def play(self, move: re.Match[str]) -> Move | None:
        """Open or flag a cell."""
        try:
            row, col = int(move[2]), int(move[3])
        except ValueError:  # more digits than Python reads
            return None
        if row >= self.rows or col >= self.cols:
            return "There is no such cell.", 0.0, INVALID
        word = move[1].lower()
        if word == "reveal":
            return self.reveal(row * self.cols + col)
        if word == "flag":
            return self.flag(row * self.cols + col)
        return "The moves are reveal and flag.", 0.0, INVALID

    def reveal(self, cell: int) -> Move:
        """Open a cell, numbered row by row."""
        if not self.mines:
            self.mines = self.lay_mines(cell)
        if cell in self.mines:
            return f"{self._name(cell)} was a mine.", 0.0, LOST
        if self.view[cell] != CLOSED:
            return f"{self._name(cell)} is open or flagged.", 0.0, INVALID
        opened = self._open(cell)
        self.safe_left -= opened
        reward = opened / self._safe
        if self.solved():
            return "The board is solved.", reward, SOLVED
        return f"{self._name(cell)} is open.", reward, GOES_ON

    def flag(self, cell: int) -> Move:
        """Set a flag or remove it."""
        if cell in self.flags:
            self.flags.remove(cell)
            self.view[cell] = CLOSED
            return f"{self._name(cell)} has no flag any more.", 0.0, GOES_ON
        if self.view[cell] != CLOSED:
            return f"{self._name(cell)} is open.", 0.0, INVALID
        self.flags.add(cell)
        self.view[cell] = FLAG
        return f"{self._name(cell)} has a flag.", 0.0, GOES_ON

    def solved(self) -> bool:
        """All safe cells are open and all mines flagged."""
        return not self.safe_left and self.mines <= self.flags

    def lay_mines(self, first: int) -> frozenset[int]:
        """Draw the cells of the mines, given the cell that is opened first."""
        spared = {first, *_around(self.rows, self.cols)[first]}
        return frozenset(
            self.rng.sample([cell for cell in range(len(self.view)) if cell not in spared], self.num_mines)
        )

    def board(self) -> str:
        """The cells, with the numbers of rows and columns."""
        view, cols = self.view, self.cols
        rows = [f"{label}{self._gap.join(view[at : at + cols])}" for at, label in self._labels]
        return "\n".join([self._header, *rows])

    def sample_random_action(self) -> str:
        """Open a closed cell, or flag it one time in ten."""
        closed = [cell for cell, sign in enumerate(self.view) if sign == CLOSED]
        if closed and self.rng.random() < 0.9:
            return self._action("reveal", self.rng.choice(closed))
        return self._action("flag", self.rng.choice(closed or [*self.flags]))

    def expert_action(self) -> str:
        """Open the cell that is least likely to hide a mine, counting all arrangements that the numbers allow.

        Mines that are certain are flagged first, where flags are needed to win.
        """
        closed = [cell for cell, sign in enumerate(self.view) if sign in (CLOSED, FLAG)]
        if len(closed) == len(self.view):  # the first cell is safe, and those around the one in the middle are, too
            middle = self.rows // 2 * self.cols + self.cols // 2
            return self._action("flag" if middle in self.flags else "reveal", middle)
        chances = odds(closed, self._clues(), self.num_mines)
        unflagged = [cell for cell in closed if cell not in self.flags]
        safest = min(closed, key=lambda cell: (chances[cell], cell in self.flags))
        if safest in self.flags:  # a flag in the wrong place
            return self._action("flag", safest)
        likely = max(unflagged, key=lambda cell: chances[cell])
        last = self.safe_left == 1 and len(unflagged) > 1  # all others are mines, known or not
        if self.needs_flags and (chances[likely] > SURE or last):
            return self._action("flag", likely)
        return self._action("reveal", safest)

    def _clues(self) -> list[tuple[frozenset[int], int]]:
        """For each open cell the closed ones around it, and how many of them hide mines."""
        around = _around(self.rows, self.cols)
        return [
            (frozenset(other for other in around[cell] if self.view[other] in (CLOSED, FLAG)), int(sign))
            for cell, sign in enumerate(self.view)
            if sign not in (CLOSED, FLAG)
        ]

    def _set_size(self, rows: int, cols: int, mines: int, turns: int) -> None:
        most = rows * cols - min(rows, 3) * min(cols, 3)
        if rows < 1 or cols < 1 or turns < 1 or not 1 <= mines <= most:
            raise EnvError(
                f"cannot play {mines} mines on {rows}x{cols} cells in {turns} turns: it needs max_turns >= 1 and "
                f"1 <= num_mines <= {max(0, most)}, as no mine is in or next to the cell opened first"
            )
        self.rows, self.cols, self.num_mines, self.max_turns = rows, cols, mines, turns
        self._safe = rows * cols - mines
        wide, high = len(str(cols - 1)), len(str(rows - 1))
        self._gap = " " * wide
        self._header = " " * high + "".join(f" {col:>{wide}}" for col in range(cols))
        self._labels = [(row * cols, f"{row:>{high}}{self._gap}") for row in range(rows)]

    def _open(self, cell: int) -> int:
        """Open a cell, and those around every 0; the number of cells opened."""
        around, view, mines = _around(self.rows, self.cols), self.view, self.mines
        opened, waiting = 1, [cell]
        view[cell] = "0"  # no longer closed, and soon to show its number
        while waiting:
            cell = waiting.pop()
            count = sum(other in mines for other in around[cell])
            view[cell] = str(count)
            if count == 0:
                closed = [other for other in around[cell] if view[other] == CLOSED]
                for other in closed:
                    view[other] = "0"
                opened += len(closed)
                waiting += closed
        return opened

    def _name(self, cell: int) -> str:
        return f"({cell // self.cols}, {cell % self.cols})"

    def _action(self, word: str, cell: int) -> str:
        return boxed(f"{word} {cell // self.cols} {cell % self.cols}")


class MinesweeperV1(BoxedGame, Minesweeper):
    """The same, with the usual ending and safe flags.

    - It is solved as soon as all safe cells are open, whatever is flagged. In `-v0-` mines had to be flagged before the
      last `reveal`, and an episode with all safe cells open could no longer be won.
    - A flagged cell cannot be revealed, mine or not, and the first `reveal` of one lays no mines. In `-v0-` revealing a
      flagged mine lost the game, so that a refusal showed that there was no mine.
    - The box accepts any white space, also next to the braces.
    """

    ACTION = re.compile(r"([a-zA-Z]+)\s+(\d+)\s+(\d+)")
    needs_flags = False
    GOAL = "You win when all cells without a mine are open; flags are only notes."

    def reveal(self, cell: int) -> Move:
        """Open a cell, numbered row by row."""
        if cell in self.flags:
            return f"{self._name(cell)} is flagged.", 0.0, INVALID
        return super().reveal(cell)

    def solved(self) -> bool:
        """All safe cells are open."""
        return not self.safe_left


@lru_cache(maxsize=32)
def _around(rows: int, cols: int) -> tuple[_Cells, ...]:
    """The neighbors of each cell."""
    return tuple(
        tuple(
            r * cols + c
            for r in range(max(0, row - 1), min(rows, row + 2))
            for c in range(max(0, col - 1), min(cols, col + 2))
            if (r, c) != (row, col)
        )
        for row in range(rows)
        for col in range(cols)
    )
