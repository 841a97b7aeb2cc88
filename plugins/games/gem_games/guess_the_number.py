"""Guess the number: find a hidden number from hints that say higher or lower."""

from __future__ import annotations

import math
import re

from gem_core.errors import EnvError
from gem_games._game import GOES_ON, INVALID, SOLVED, BoxedGame, Game, Move, boxed, to_be_drawn


class GuessTheNumber(Game):
    """A number between `min_number` and `max_number`, both included, to be found within `max_turns` guesses.

    Action: the last `\\boxed{N}` in the text.

    | guess | reward | episode |
    | --- | --- | --- |
    | right | 1 | terminated |
    | wrong | 0, and a hint | continues |
    | out of range, or made before | 0 | continues; the turn is used up |
    | no box, or 0 | -0.1 | terminated (and truncated, if it was the last turn) |
    | wrong or repeated on the last turn | 1 - distance / (max_number - min_number) | terminated and truncated |
    | out of range on the last turn | 0 | terminated and truncated |

    Args:
        min_number, max_number, max_turns: the range and the limit; all `None` draws them anew for each episode.

    Raises:
        EnvError: an empty range, fewer than one turn, or only some of the three given.
    """

    ACTION = re.compile(r"\\boxed\{(\d+)\}")
    FORM = boxed("number")

    def __init__(self, min_number: int | None = 1, max_number: int | None = 20, max_turns: int | None = 10) -> None:
        self._drawn = to_be_drawn(min_number=min_number, max_number=max_number, max_turns=max_turns)
        if min_number is not None and max_number is not None and max_turns is not None:
            self._set_limits(min_number, max_number, max_turns)

    def deal(self) -> None:
        """Draw a number, and the range and the limit if none were given."""
        if self._drawn:
            low = self.rng.randint(1, 10)
            high = self.rng.randint(low + 5, low + 50)
            self._set_limits(low, high, math.ceil(math.sqrt(high - low)) + 1)
        self.target = self.rng.randint(self.min_number, self.max_number)
        self.guesses: list[int] = []

    def rules(self) -> str:
        """Range, limit and form."""
        return (
            f"Guess my number from {self.min_number} to {self.max_number} in {self.max_turns} guesses. "
            "After each I say higher or lower. "
            f"Put your guess in a box, for example {boxed(self.rng.randint(self.min_number, self.max_number))}.\n"
        )

    def play(self, move: re.Match[str]) -> Move | None:
        """Make a guess."""
        guess = self.read(move[1])
        if guess is None:
            return None
        if guess == self.target:
            return f"{guess} is right.\n", 1.0, SOLVED
        problem = self._problem(guess)
        self.guesses.append(guess)
        if problem:
            return problem, 0.0, INVALID
        return f"My number is {'higher' if self.target > guess else 'lower'} than {guess}.\n", 0.0, GOES_ON

    def read(self, digits: str) -> int | None:
        """The number guessed."""
        try:
            return int(digits) or None
        except ValueError:  # more digits than Python reads
            return None

    def consolation(self) -> float:
        """The nearer the last guess, the more it pays."""
        guess = self.guesses[-1]
        if not self.min_number <= guess <= self.max_number:
            return 0.0
        return 1.0 - abs(guess - self.target) / (self.max_number - self.min_number)

    def farewell(self, observation: str) -> str:
        """The number."""
        return f"My number was {self.target}.\n"

    def sample_random_action(self) -> str:
        """A number in range that was not guessed before."""
        # At least one number remains, because the right one never counts as guessed.
        while (guess := self.rng.randint(self.min_number, self.max_number)) in self.guesses:
            pass
        return boxed(guess)

    def expert_action(self) -> str:
        """The middle of what the hints leave (bisection), which needs the fewest guesses on average."""
        low = max([self.min_number, *(guess + 1 for guess in self.guesses if guess < self.target)])
        high = min([self.max_number, *(guess - 1 for guess in self.guesses if guess > self.target)])
        return boxed((low + high) // 2)

    def render(self) -> str:
        """Range, guesses and turns so far."""
        return f"{self.min_number}..{self.max_number}, guesses {self.guesses}, turn {self.turn}/{self.max_turns}"

    def _set_limits(self, low: int, high: int, turns: int) -> None:
        if low < 1 or high <= low or turns < 1:
            raise EnvError(
                f"cannot play {low}..{high} in {turns} turns: it needs 1 <= min_number < max_number and max_turns >= 1"
            )
        self.min_number, self.max_number, self.max_turns = low, high, turns

    def _problem(self, guess: int) -> str | None:
        if not self.min_number <= guess <= self.max_number:
            return "That is out of range.\n"
        return f"{guess} was guessed before.\n" if guess in self.guesses else None


class GuessTheNumberV1(BoxedGame, GuessTheNumber):
    """The same, without a reward for a near miss: the last guess pays like any other.

    Always guessing the middle of 1 to 50 earned 0.74 of 1 a game. The box accepts white space, and 0 is a number out of
    range.
    """

    ACTION = re.compile(r"(\d+)")

    def read(self, digits: str) -> int | None:
        """The number guessed."""
        try:
            return int(digits)
        except ValueError:  # more digits than Python reads
            return None

    def consolation(self) -> float:
        """None."""
        return 0.0
