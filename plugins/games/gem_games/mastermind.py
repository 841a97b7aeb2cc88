"""Mastermind: find a hidden code from the number of black and white pegs that each guess earns."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import permutations, product
from operator import eq
from typing import TypeAlias

from gem_core.errors import EnvError
from gem_games._candidates import most_telling
from gem_games._game import GOES_ON, INVALID, SOLVED, Game, Move, boxed, to_be_drawn

Code: TypeAlias = tuple[int, ...]

_RANDOM = ((2, 4, 10), (4, 6, 20), (4, 8, 30))
"""Code length, numbers and turns to draw from."""


class Mastermind(Game):
    """A code of `code_length` numbers between 1 and `num_numbers`, to be found within `max_turns` guesses.

    Action: the last `\\boxed{N N ...}` in the text, numbers separated by white space. A black peg is a right number in
    the right place, a white peg a right number in another place. A guess may repeat numbers even if the code does not.

    | guess | reward | episode |
    | --- | --- | --- |
    | more black pegs than any before | the increase / code_length, so that the sum is 1 at the right code | continues |
    | the right code | as above | terminated |
    | other | 0 | continues |
    | of another length, out of range, or made before | 0, no pegs | continues; the turn is used up |
    | no box | -0.1 | terminated (and truncated, if it was the last turn) |
    | not the right code on the last turn | as above | terminated and truncated |

    Args:
        code_length, num_numbers, max_turns: code and limit; all `None` draws one of three sizes for each episode.
        duplicate_numbers: whether a number may be in the code more than once.

    Raises:
        EnvError: no such code exists, fewer than one turn, or only some of the three given.
    """

    ACTION = re.compile(r"\\boxed\{(\d+(?:\s+\d+)*)\}")
    FORM = boxed("number number ...")

    def __init__(
        self,
        code_length: int | None = 4,
        num_numbers: int | None = 6,
        max_turns: int | None = 20,
        duplicate_numbers: bool = False,
    ) -> None:
        self._drawn = to_be_drawn(code_length=code_length, num_numbers=num_numbers, max_turns=max_turns)
        self.duplicate_numbers = duplicate_numbers
        if code_length is not None and num_numbers is not None and max_turns is not None:
            self._set_size(code_length, num_numbers, max_turns)

    def deal(self) -> None:
        """Draw a code, and its size if none was given."""
        if self._drawn:
            self._set_size(*self.rng.choice(_RANDOM))
        self.code = self._draw_code()
        self.guesses: set[Code] = set()
        self.most_black = 0

    def rules(self) -> str:
        """Size of the code, limit, pegs and form."""
        repeats = "which may repeat" if self.duplicate_numbers else "all different"
        return (
            f"Find my code of {self.code_length} numbers from 1 to {self.num_numbers}, {repeats}, "
            f"in {self.max_turns} guesses. After each I count black pegs (right number, right place) "
            "and white pegs (right number, wrong place). "
            f"Put your guess in a box, numbers parted by spaces, for example {boxed(_text(self._draw_code()))}.\n"
        )

    def play(self, move: re.Match[str]) -> Move | None:
        """Make a guess."""
        try:
            guess = tuple(map(int, move[1].split()))
        except ValueError:  # more digits than Python reads
            return None
        if problem := self._problem(guess):
            return problem, 0.0, INVALID
        black = sum(map(eq, guess, self.code))
        reward = 0.0
        if black > self.most_black:
            reward = (black - self.most_black) / self.code_length
            self.most_black = black
        if black == self.code_length:
            return f"{_text(guess)} is right.", reward, SOLVED
        self.guesses.add(guess)
        return f"{_text(guess)}: {black} black, {pegs(guess, self.code)[1]} white.", reward, GOES_ON

    def farewell(self, observation: str) -> str:
        """The code."""
        return f"{observation} No turns are left. The code was {_text(self.code)}."

    def sample_random_action(self) -> str:
        """A possible code that was not guessed before."""
        # At least one code remains, because the right one never counts as guessed.
        while (guess := self._draw_code()) in self.guesses:
            pass
        return boxed(_text(guess))

    def expert_action(self) -> str:
        """A code that the pegs so far allow, and whose pegs leave the fewest others on average.

        This reads the pegs of each guess, and not the code. It is not optimal: a code that is ruled out may tell more.
        """
        if not self.guesses:  # all codes of distinct numbers tell as much
            return boxed(_text(tuple(place % self.num_numbers + 1 for place in range(self.code_length))))
        seen = {guess: pegs(guess, self.code) for guess in self.guesses}
        numbers = range(1, self.num_numbers + 1)
        codes = (
            product(numbers, repeat=self.code_length)
            if self.duplicate_numbers
            else permutations(numbers, self.code_length)
        )
        possible = [code for code in codes if all(pegs(guess, code) == shown for guess, shown in seen.items())]
        return boxed(_text(most_telling(possible, possible, pegs)))

    def render(self) -> str:
        """Size of the code and turns so far."""
        return f"{self.code_length} of 1..{self.num_numbers}, turn {self.turn}/{self.max_turns}"

    def _set_size(self, length: int, numbers: int, turns: int) -> None:
        if length < 1 or turns < 1 or numbers < (1 if self.duplicate_numbers else length):
            raise EnvError(
                f"cannot play a code of {length} numbers from 1 to {numbers} in {turns} turns: it needs "
                "code_length >= 1, max_turns >= 1, and num_numbers >= code_length where duplicate_numbers is False"
            )
        self.code_length, self.num_numbers, self.max_turns = length, numbers, turns

    def _draw_code(self) -> Code:
        numbers = range(1, self.num_numbers + 1)
        draw = self.rng.choices if self.duplicate_numbers else self.rng.sample
        return tuple(draw(numbers, k=self.code_length))

    def _problem(self, guess: Code) -> str | None:
        if len(guess) != self.code_length:
            return f"A guess has {self.code_length} numbers, not {len(guess)}."
        if min(guess) < 1 or max(guess) > self.num_numbers:
            return f"Numbers go from 1 to {self.num_numbers}."
        return f"{_text(guess)} was guessed before." if guess in self.guesses else None


def pegs(guess: Code, code: Code) -> tuple[int, int]:
    """The black and the white pegs of a guess."""
    black, left = sum(map(eq, guess, code)), [*code]
    for number in guess:
        if number in left:
            left.remove(number)
    return black, len(code) - len(left) - black


@lru_cache(maxsize=1 << 12)
def _text(code: Code) -> str:
    return " ".join(map(str, code))
