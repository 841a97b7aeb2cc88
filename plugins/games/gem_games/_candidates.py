"""The codes or words that are still possible, and the guess that narrows them down most."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

Candidate = TypeVar("Candidate")
Guess = TypeVar("Guess")

MAX_COMPARED = 200
"""Candidates that guesses are compared on. More are thinned out evenly: the cost grows with the square."""


def most_telling(
    guesses: Sequence[Guess],
    candidates: Sequence[Candidate],
    answer: Callable[[Guess, Candidate], Hashable],
) -> Guess:
    """The guess whose answers leave the fewest candidates on average; of equal ones the first.

    Args:
        guesses: what may be guessed.
        candidates: what may be hidden, each as likely as the others.
        answer: what the game says to a guess, if a candidate is hidden.
    """
    compared = _thinned(candidates)

    def left(guess: Guess) -> int:
        return sum(count * count for count in Counter(answer(guess, one) for one in compared).values())

    return min(_thinned(guesses), key=left)


def _thinned(many: Sequence[Candidate]) -> Sequence[Candidate]:
    return many[:: math.ceil(len(many) / MAX_COMPARED)] if many else many
