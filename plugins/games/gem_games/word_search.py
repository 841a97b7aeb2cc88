"""Word search: find words in a square of letters."""

from __future__ import annotations

import re

from gem_core.errors import EnvError
from gem_games._game import GOES_ON, INVALID, SOLVED, BoxedGame, Game, Move, boxed, to_be_drawn
from gem_games._letter_grid import EMPTY, Grid, drawn, read_numbers
from gem_games._words import require, word_list

_DRAWN_WORDS, _DRAWN_TURNS = 5, 20
"""Parameters of an episode if none are given."""
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class WordSearch(Game):
    """`num_words` hidden words, across or down, to be found within `max_turns` guesses of where they begin and end.

    Action: the last `\\boxed{row column row column}` in the text: the word's first and last letter or the other way
    round, counted from 0, with white space between the numbers.

    | guess | reward | episode |
    | --- | --- | --- |
    | a word | 1 / words | continues; terminated when all words are found |
    | a word found before, with its ends swapped | 1 / words once more | continues |
    | a line that is no word | 0 | continues |
    | outside the grid, tried before, or neither across nor down | 0 | continues; the turn is used up |
    | no such box | -0.1 | terminated (and truncated, if it was the last turn) |
    | any on the last turn that does not complete it | as above | terminated and truncated |

    Args:
        hardcore, max_turns, num_words: words of the large list or of the everyday one, the limit, and how many; all
            `None` draws the first for each episode, with 5 words in 20 turns.

    Raises:
        EnvError: fewer than one turn, fewer than one or more than 50 words, or only some of the three given.
        MissingExtraError: a package with the words is not installed.
    """

    ACTION = re.compile(r"\\boxed\{(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\}")
    FORM = boxed("row column row column")

    def __init__(self, hardcore: bool | None = False, max_turns: int | None = 20, num_words: int | None = 5) -> None:
        self._drawn = to_be_drawn(hardcore=hardcore, max_turns=max_turns, num_words=num_words)
        self.hardcore = bool(hardcore)
        self.num_words = _DRAWN_WORDS if num_words is None else num_words
        self.max_turns = _DRAWN_TURNS if max_turns is None else max_turns
        if not 1 <= self.num_words <= 50 or self.max_turns < 1:
            raise EnvError(
                f"cannot play {self.num_words} words in {self.max_turns} turns: it needs 1 to 50 words and "
                "max_turns >= 1"
            )
        require(hardcore=self.hardcore or self._drawn)

    def deal(self) -> None:
        """Draw words and hide them."""
        if self._drawn:
            self.hardcore = self.rng.random() < 0.5
        grid = Grid(self.rng.sample(word_list(hardcore=self.hardcore), self.num_words), self.rng)
        fill = self.rng.choices(_ALPHABET, k=len(grid.cells))
        letters = [other if letter == EMPTY else letter for letter, other in zip(grid.cells, fill, strict=True)]
        self.show(grid.size, letters, {(line.row, line.column, *line.end): line.word for line in grid.lines})

    def show(self, size: int, letters: list[str], places: dict[tuple[int, ...], str]) -> None:
        """Start with these letters, row by row, and with words from (row, column) to (row, column)."""
        self.size, self.letters, self.places = size, letters, places
        self.words = [*places.values()]
        self.found: set[str] = set()
        self.tried: set[tuple[int, ...]] = set()
        self.marks = [f" {letter} " for letter in letters]
        self._draw()

    def rules(self) -> str:
        """Count, limit and form."""
        row, column, last_row, last_column = self._line_without_word()
        example = boxed(f"{row} {column} {last_row} {last_column}")
        return (
            f"Word search: {len(self.words)} words are hidden in the square, from left to right or from top to bottom. "
            f"Find them in {self.max_turns} turns. Those found stand in brackets. Rows and columns count from 0. "
            "Put the row and column of the first letter and those of the last one in a box, for example "
            f"{example} for a word in row {row} from column {column} to column {last_column}.\n"
        )

    def board(self) -> str:
        """The square, and how many words are found."""
        return self._board

    def play(self, move: re.Match[str]) -> Move | None:
        """Guess where a word is."""
        line = read_numbers(move.groups())
        if line is None:
            return None
        guess = self.key(line)
        problem = self._problem(line, guess)
        self.tried.add(guess)
        if problem:
            return problem, 0.0, INVALID
        word = self.word_at(line)
        if word is None:
            return "There is no hidden word.\n", 0.0, GOES_ON
        self.found.add(word)
        self._bracket(line)
        self._draw()
        solved = len(self.found) == len(self.words)
        observation = f"{word} is right{' and the last one' if solved else ''}.\n"
        return observation, 1 / len(self.words), SOLVED if solved else GOES_ON

    def key(self, line: list[int]) -> tuple[int, ...]:
        """The key by which two guesses count as the same."""
        return tuple(line)

    def word_at(self, line: list[int]) -> str | None:
        """The word with these ends, in either order."""
        first_row, first_column, last_row, last_column = line
        forwards = self.places.get((first_row, first_column, last_row, last_column))
        return forwards or self.places.get((last_row, last_column, first_row, first_column))

    def words_left(self) -> str:
        """The line of the board about the words that are not found."""
        return ""

    def farewell(self, observation: str) -> str:
        """The last guess's answer."""
        return f"{observation}No turns are left.\n"

    def sample_random_action(self) -> str:
        """A line that was not tried before."""
        while True:
            row, column, end = (self.rng.randrange(self.size) for _ in range(3))
            line = [row, column, row, end] if self.rng.random() < 0.5 else [row, column, end, column]
            if self.key(line) not in self.tried:
                return boxed(" ".join(map(str, line)))

    def expert_action(self) -> str:
        """The place of a word that is not found yet, as a player who knows the words would."""
        place = next(place for place, word in self.places.items() if word not in self.found)
        return boxed(" ".join(map(str, place)))

    def _problem(self, line: list[int], guess: tuple[int, ...]) -> str | None:
        if max(line) >= self.size:
            return "That is outside the square.\n"
        if guess in self.tried:
            return "That was tried before.\n"
        if line[0] != line[2] and line[1] != line[3]:
            return "Words go across or down.\n"
        return None

    def _line_without_word(self) -> list[int]:
        while True:
            row, column = self.rng.randrange(self.size), self.rng.randrange(self.size - 2)
            line = [row, column, row, self.rng.randrange(column + 2, self.size)]
            if self.word_at(line) is None:
                return line

    def _cells(self, line: list[int]) -> list[int]:
        """Numbers of the cells of a line, from left to right or from top to bottom."""
        first, last = sorted((line[0] * self.size + line[1], line[2] * self.size + line[3]))
        return [*range(first, last + 1, 1 if line[0] == line[2] else self.size)]

    def _bracket(self, line: list[int]) -> None:
        for cell in self._cells(line):
            self.marks[cell] = f"[{self.letters[cell]}]"

    def _draw(self) -> None:
        count = f"Found: {len(self.found)} of {len(self.words)}"
        self._board = f"{drawn(self.marks, self.size)}\n{count}{self.words_left()}"


class WordSearchV1(BoxedGame, WordSearch):
    """The same, with four fixes.

    - The box accepts white space.
    - The words to find are shown; in `-v0-` only their number is.
    - A line with its ends swapped was tried before, so that no word pays twice. In `-v0-` five words paid up to 1.8.
    - A word counts wherever it can be read, even if the letters around the hidden words happen to spell it.
    """

    ACTION = re.compile(r"(\d+)\s+(\d+)\s+(\d+)\s+(\d+)")

    def key(self, line: list[int]) -> tuple[int, ...]:
        """The ends in one order."""
        return (*line[:2], *line[2:]) if line[:2] <= line[2:] else (*line[2:], *line[:2])

    def word_at(self, line: list[int]) -> str | None:
        """The word that is not found yet and can be read there."""
        word = "".join(self.letters[cell] for cell in self._cells(line))
        return word if word in self.words and word not in self.found else None

    def words_left(self) -> str:
        """The words that are not found, in alphabetical order."""
        return "\nTo find: " + ", ".join(sorted(set(self.words) - self.found))
