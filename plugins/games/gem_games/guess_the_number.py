"""Guess the number: find a hidden number from hints that say higher or lower."""

from __future__ import annotations

import math
import re
from typing import Any

from gem_core.env import Env, Info, ResetResult, StepResult
from gem_core.errors import EnvError
from gem_games.boxed import FORMAT_ERROR_REWARD, boxed, last_match

_ACTION = re.compile(r"\\boxed\{(\d+)\}")


class GuessTheNumber(Env):
    """A number between `min_number` and `max_number`, both included, to be found within `max_turns` guesses.

    Action: the last `\\boxed{N}` in the text.

    | guess | reward | episode |
    | --- | --- | --- |
    | right | 1 | terminated |
    | wrong | 0, and a hint | goes on |
    | out of range, or made before | 0 | goes on, the turn is spent |
    | no box, or 0 | -0.1 | terminated (and truncated, if it was the last turn) |
    | wrong or repeated on the last turn | 1 - distance / (max_number - min_number) | terminated and truncated |
    | out of range on the last turn | 0 | terminated and truncated |

    Args:
        min_number, max_number, max_turns: the range and the limit; all `None` draws them anew for each episode.

    Raises:
        EnvError: an empty range, fewer than one turn, or only some of the three given.
    """

    def __init__(self, min_number: int | None = 1, max_number: int | None = 20, max_turns: int | None = 10) -> None:
        given = [value is not None for value in (min_number, max_number, max_turns)]
        if any(given) and not all(given):
            raise EnvError("give min_number, max_number and max_turns, or None for all three to draw them")
        self._drawn = not any(given)
        if min_number is not None and max_number is not None and max_turns is not None:
            self._set_limits(min_number, max_number, max_turns)

    def reset(self, seed: int | None = None, **options: Any) -> ResetResult:
        """Draw a number, and where asked the range and the limit."""
        super().reset(seed=seed)
        if self._drawn:
            low = self.rng.randint(1, 10)
            high = self.rng.randint(low + 5, low + 50)
            self._set_limits(low, high, math.ceil(math.sqrt(high - low)) + 1)
        self.target = self.rng.randint(self.min_number, self.max_number)
        self.turn = 0
        self.guesses: list[int] = []
        return self._rules(), {}

    def step(self, action: str) -> StepResult:
        """Make a guess."""
        self.turn += 1
        last = self.turn >= self.max_turns
        guess = _read(action)
        if not guess:
            return (
                "There was no number in a box.\n",
                FORMAT_ERROR_REWARD,
                True,
                last,
                {"success": False, "invalid_action": True},
            )
        if guess == self.target:
            return f"{guess} is right.\n", 1.0, True, False, {"success": True}
        problem = self._problem(guess)
        self.guesses.append(guess)
        info: Info = {"success": False, **({"invalid_action": True} if problem else {})}
        if last:
            return f"My number was {self.target}.\n", self._consolation(guess), True, True, info
        hint = f"My number is {'higher' if self.target > guess else 'lower'} than {guess}."
        return f"{problem or hint}\n", 0.0, False, False, info

    def sample_random_action(self) -> str:
        """A number in range that was not guessed before."""
        left = [number for number in range(self.min_number, self.max_number + 1) if number not in self.guesses]
        return boxed(self.rng.choice(left))

    def render(self) -> str:
        """Range, guesses and turns so far."""
        return f"{self.min_number}..{self.max_number}, guesses {self.guesses}, turn {self.turn}/{self.max_turns}"

    def _set_limits(self, low: int, high: int, turns: int) -> None:
        if low < 1 or high <= low or turns < 1:
            raise EnvError(
                f"cannot play {low}..{high} in {turns} turns: it needs 1 <= min_number < max_number and max_turns >= 1"
            )
        self.min_number, self.max_number, self.max_turns = low, high, turns

    def _rules(self) -> str:
        return (
            f"Guess my number from {self.min_number} to {self.max_number} in {self.max_turns} guesses. "
            "After each I say higher or lower. "
            f"Put your guess in a box, for example {boxed(self.rng.randint(self.min_number, self.max_number))}.\n"
        )

    def _problem(self, guess: int) -> str | None:
        if not self.min_number <= guess <= self.max_number:
            return "That is out of range."
        return f"{guess} was guessed before." if guess in self.guesses else None

    def _consolation(self, guess: int) -> float:
        if not self.min_number <= guess <= self.max_number:
            return 0.0
        return 1.0 - abs(guess - self.target) / (self.max_number - self.min_number)


def _read(action: str) -> int:
    """The number guessed, or 0 for none."""
    match = last_match(_ACTION, action)
    try:
        return int(match[1]) if match else 0
    except ValueError:  # more digits than Python reads
        return 0
