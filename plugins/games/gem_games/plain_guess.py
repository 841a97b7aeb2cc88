"""Guess a number in plain words, for small language models: no box, no rules, three guesses."""

from __future__ import annotations

import re
from typing import Literal

from gem_core.errors import EnvError
from gem_games._game import GOES_ON, SOLVED, Game, Move

_LOWEST = range(1, 91)
_SIZE = 8
_HELD_OUT = 5
"""Ranges whose lowest number this divides are those of the split `test`."""


class PlainGuess(Game):
    """A number from 8 in a row, for example 21 to 28, to be found in `max_turns` guesses.

    Action: the last number in the text.

    | guess | reward | episode |
    | --- | --- | --- |
    | right | 1 | terminated |
    | wrong | 0, and "Higher." or "Lower." | continues |
    | out of range, or no number | -0.1 | terminated (and truncated, if it was the last turn) |
    | wrong on the last turn | 0 | terminated and truncated |

    With three guesses, the middle of what is left wins 7 of 8 games, and any three numbers in range win 3 of 8.

    Args:
        max_turns: how many guesses there are.
        split: the ranges; `train` starts at any number up to 90 that 5 does not divide, `test` at those that it divides.

    Raises:
        EnvError: fewer than one guess, or another split.
    """

    ACTION = re.compile(r"[0-9]+")
    FORM = "N, a number in range"

    def __init__(self, max_turns: int = 3, split: Literal["train", "test"] = "train") -> None:
        if max_turns < 1 or split not in ("train", "test"):
            raise EnvError(f"max_turns={max_turns}, split={split!r}: it needs max_turns >= 1, and 'train' or 'test'")
        self.max_turns = max_turns
        self._lowest = [low for low in _LOWEST if (low % _HELD_OUT == 0) == (split == "test")]

    def deal(self) -> None:
        """Draw a range and a number."""
        self.low = self.rng.choice(self._lowest)
        self.high = self.low + _SIZE - 1
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
