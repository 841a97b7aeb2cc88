"""Guess a number in plain words, for small language models: no box, few words, three guesses."""

from __future__ import annotations

import re
from typing import Literal

from gem_core.errors import EnvError
from gem_games._game import GOES_ON, SOLVED, Game, Move

_DECADES = {"train": (10, 20, 40, 50, 70, 80), "test": (30, 60, 90)}
_DISTANCE = 2
"""Between the given number and the target, at most."""


class PlainGuess(Game):
    """Find a number that is at most 2 away from a given one, in `max_turns` guesses.

    Action: the last number in the text.

    | guess | reward | episode |
    | --- | --- | --- |
    | right | 1 | terminated |
    | wrong | 0, and "Higher." or "Lower." | continues |
    | more than 2 away, or no number | -0.1 | terminated (and truncated, if it was the last turn) |
    | wrong on the last turn | 0 | terminated and truncated |

    With three guesses, a player who begins with the given number and follows the hints always wins. Any three of the
    five candidates win 3 of 5 games; guesses at random win 0.488.

    Args:
        max_turns: how many guesses there are.
        split: the numbers; `test` has the thirties, the sixties and the nineties, `train` the other decades from 10 on.

    Raises:
        EnvError: fewer than one guess, or another split.
    """

    ACTION = re.compile(r"[0-9]+")
    FORM = "N, a number that may be right"

    def __init__(self, max_turns: int = 3, split: Literal["train", "test"] = "train") -> None:
        if max_turns < 1 or split not in _DECADES:
            raise EnvError(f"max_turns={max_turns}, split={split!r}: it needs max_turns >= 1, and 'train' or 'test'")
        self.max_turns = max_turns
        self._decades = _DECADES[split]

    def deal(self) -> None:
        """Draw both numbers, of the same decade."""
        self.near = self.rng.choice(self._decades) + self.rng.randint(_DISTANCE, 9 - _DISTANCE)
        self.target = self.near + self.rng.randint(-_DISTANCE, _DISTANCE)
        self.low, self.high = self.near - _DISTANCE, self.near + _DISTANCE

    def rules(self) -> str:
        """The given number."""
        return f"Guess my number. It is {self.near} or up to {_DISTANCE} away."

    def play(self, move: re.Match[str]) -> Move | None:
        """Make a guess."""
        digits = move[0].lstrip("0")
        if len(digits) > 2 or abs((guess := int(digits or 0)) - self.near) > _DISTANCE:
            return None
        if guess == self.target:
            return f"Yes, {guess}.", 1.0, SOLVED
        if self.target > guess:
            self.low = max(self.low, guess + 1)
            return "Higher.", 0.0, GOES_ON
        self.high = min(self.high, guess - 1)
        return "Lower.", 0.0, GOES_ON

    def farewell(self, observation: str) -> str:
        """The number."""
        return f"No, it was {self.target}."

    def sample_random_action(self) -> str:
        """Any of the candidates."""
        return str(self.near + self.rng.randint(-_DISTANCE, _DISTANCE))

    def expert_action(self) -> str:
        """The middle of what the hints leave."""
        return str((self.low + self.high) // 2)

    def render(self) -> str:
        """The given number, and the turns so far."""
        return f"near {self.near}, turn {self.turn} of {self.max_turns}"
