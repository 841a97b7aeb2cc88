"""Guess a number in plain words, for small language models: no box, no rules, three guesses."""

from __future__ import annotations

import re
from typing import Literal

from gem_core.errors import EnvError
from gem_games._game import GOES_ON, SOLVED, Game, Move

_DECADES = {"train": (10, 20, 40, 50, 70, 80), "test": (30, 60, 90)}


class PlainGuess(Game):
    """A number from 7 in a row, for example 21 to 27, to be found in `max_turns` guesses.

    Action: the last number in the text.

    | guess | reward | episode |
    | --- | --- | --- |
    | right | 1 | terminated |
    | wrong | 0, and "Higher." or "Lower." | continues |
    | out of range, or no number | -0.1 | terminated (and truncated, if it was the last turn) |
    | wrong on the last turn | 0 | terminated and truncated |

    With three guesses, the middle of what is left always wins, and any three numbers in range win 3 of 7 games.

    Args:
        max_turns: how many guesses there are.
        split: the ranges; `train` has 11 to 17, 21, 41, 51, 71 and 81 to 87, and `test` 31, 61 and 91 to 97.

    Raises:
        EnvError: fewer than one guess, or another split.
    """

    ACTION = re.compile(r"[0-9]+")
    FORM = "N, a number in range"

    def __init__(self, max_turns: int = 3, split: Literal["train", "test"] = "train") -> None:
        if max_turns < 1 or split not in _DECADES:
            raise EnvError(f"max_turns={max_turns}, split={split!r}: it needs max_turns >= 1, and 'train' or 'test'")
        self.max_turns = max_turns
        self._decades = _DECADES[split]

    def deal(self) -> None:
        """Draw a range and a number."""
        decade = self.rng.choice(self._decades)
        self.low, self.high = decade + 1, decade + 7
        self.target = self.rng.randint(self.low, self.high)

    def rules(self) -> str:
        """The range."""
        return f"Guess my number, {self.low} to {self.high}. Reply with a number."

    def play(self, move: re.Match[str]) -> Move | None:
        """Make a guess."""
        digits = move[0].lstrip("0")
        if len(digits) > 2 or not self.low <= (guess := int(digits or 0)) <= self.high:
            return None
        if guess == self.target:
            return f"Yes, {guess}.", 1.0, SOLVED
        return "Higher." if self.target > guess else "Lower.", 0.0, GOES_ON

    def farewell(self, observation: str) -> str:
        """The number."""
        return f"No, it was {self.target}."

    def sample_random_action(self) -> str:
        """Any number in range."""
        return str(self.rng.randint(self.low, self.high))

    def render(self) -> str:
        """The range and the turns so far."""
        return f"{self.low} to {self.high}, turn {self.turn} of {self.max_turns}"
