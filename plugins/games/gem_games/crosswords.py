"""Crosswords: fill crossing words letter by letter from clues."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib import resources
from typing import NamedTuple

from gem_core.errors import EnvError
from gem_games._game import GOES_ON, INVALID, SOLVED, Game, Move, boxed, to_be_drawn
from gem_games._letter_grid import EMPTY, Grid, drawn, read_numbers

_DRAWN_WORDS, _DRAWN_TURNS = 3, 20
"""Parameters of an episode if none are given."""
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_HIDDEN, _OUTSIDE = " _ ", " . "


class Clue(NamedTuple):
    """A word, in upper case, and its clue."""

    word: str
    text: str


@cache
def clues_of(*, hardcore: bool) -> tuple[Clue, ...]:
    """The clues for rare words or those for common ones, from this project's `crossword_clues.jsonl`."""
    text = resources.files("gem_games").joinpath("crossword_clues.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    return tuple(Clue(row["word"].upper(), row["clue"]) for row in rows if row["hardcore"] is hardcore)


class Crosswords(Game):
    """A crossword of `num_words` words, to be filled within `max_turns` letters.

    Action: the last `\\boxed{row column letter}` in the text, counted from 0, with white space between the three; the
    letter is upper or lower case.

    | letter | reward | episode |
    | --- | --- | --- |
    | right | 1 / cells | continues; terminated if it was the last |
    | wrong | 0 | continues |
    | outside the grid, on a cell without letter, or on one that is filled | 0 | continues; the turn is used up |
    | no such box | -0.1 | terminated (and truncated, if it was the last turn) |
    | any on the last turn that does not complete it | as above | terminated and truncated |

    Args:
        hardcore, max_turns, num_words: rare words or common ones, the limit, and how many; all `None` draws the first
            for each episode, with 3 words in 20 turns.

    Words that do not cross may stand side by side. Clues do not say where a word is; the player has to find out. Three
    long words can have more letters than the 20 turns of a drawn episode.

    Raises:
        EnvError: fewer than one turn or word, more words than there are clues, or only some of the three given.
    """

    ACTION = re.compile(r"\\boxed\{(\d+)\s+(\d+)\s+([a-zA-Z])\}")
    FORM = boxed("row column letter")

    def __init__(self, hardcore: bool | None = False, max_turns: int | None = 100, num_words: int | None = 5) -> None:
        self._drawn = to_be_drawn(hardcore=hardcore, max_turns=max_turns, num_words=num_words)
        self.hardcore = bool(hardcore)
        self.num_words = _DRAWN_WORDS if num_words is None else num_words
        self.max_turns = _DRAWN_TURNS if max_turns is None else max_turns
        there_are = len(clues_of(hardcore=self.hardcore))
        if not 1 <= self.num_words <= there_are or self.max_turns < 1:
            raise EnvError(
                f"cannot play {self.num_words} words in {self.max_turns} turns: it needs 1 <= num_words <= {there_are} "
                "and max_turns >= 1"
            )

    def deal(self) -> None:
        """Draw words and lay them out."""
        if self._drawn:
            self.hardcore = self.rng.random() < 0.5
        clues = dict(self.rng.sample(clues_of(hardcore=self.hardcore), self.num_words))
        grid = Grid([*clues], self.rng)
        self.clues = "\n".join(
            f"{'down' if line.down else 'across'}, {len(line.word)} letters: {clues[line.word]}" for line in grid.lines
        )
        self.show(grid.size, grid.cells)

    def show(self, size: int, solution: list[str]) -> None:
        """Start with these letters, row by row, all hidden; `EMPTY` marks a cell without a letter."""
        self.size, self.solution = size, solution
        self.hidden = [place for place, letter in enumerate(solution) if letter != EMPTY]
        self.cells = len(self.hidden)
        self.marks = [_OUTSIDE if letter == EMPTY else _HIDDEN for letter in solution]
        self._draw()

    def rules(self) -> str:
        """Marks, limit and form."""
        place = self.rng.choice(self.hidden)
        letter = self.rng.choice(_ALPHABET.replace(self.solution[place], ""))
        example = f"{place // self.size} {place % self.size} {letter}"
        return (
            f"Crossword: fill every _ with its letter in {self.max_turns} turns, one letter a turn. "
            "A dot has no letter. Rows and columns count from 0. "
            f"Put row, column and letter in a box, for example {boxed(example)}.\n"
        )

    def board(self) -> str:
        """The grid and the clues."""
        return self._board

    def play(self, move: re.Match[str]) -> Move | None:
        """Fill in a letter."""
        numbers = read_numbers(move.groups()[:2])
        if numbers is None:
            return None
        (row, column), letter = numbers, move[3].upper()
        if problem := self._problem(row, column):
            return problem, 0.0, INVALID
        place = row * self.size + column
        if self.solution[place] != letter:
            return f"{letter} at {row} {column} is wrong.\n", 0.0, GOES_ON
        self.hidden.remove(place)
        self.marks[place] = f" {letter} "
        self._draw()
        if not self.hidden:
            return f"{letter} at {row} {column} completes the crossword.\n", 1 / self.cells, SOLVED
        return f"{letter} at {row} {column} is right.\n", 1 / self.cells, GOES_ON

    def farewell(self, observation: str) -> str:
        """The last letter's answer."""
        return f"{observation}No turns are left.\n"

    def sample_random_action(self) -> str:
        """Any letter on a hidden cell."""
        place = self.rng.choice(self.hidden)
        return boxed(f"{place // self.size} {place % self.size} {self.rng.choice(_ALPHABET)}")

    def expert_action(self) -> str:
        """The right letter of the first hidden cell, as a player who knows the words would."""
        place = self.hidden[0]
        return boxed(f"{place // self.size} {place % self.size} {self.solution[place]}")

    def _problem(self, row: int, column: int) -> str | None:
        if row >= self.size or column >= self.size:
            return "That is outside the grid.\n"
        mark = self.marks[row * self.size + column]
        if mark == _HIDDEN:
            return None
        return f"{row} {column} {'has no letter' if mark == _OUTSIDE else 'is filled already'}.\n"

    def _draw(self) -> None:
        self._board = f"{drawn(self.marks, self.size)}\n{self.clues}"
