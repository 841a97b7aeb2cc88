"""Numbers of an episode that studies report. A run names one with `measure`."""

from __future__ import annotations

import re

from gem_core.episode import Episode
from recipes.meter import Measure

FAILED_GUESSES = 50
"""What an episode counts that does not find the number."""
MAX_PLAIN_GUESSES = 3
_BOUNDS = re.compile(r"(\d\d) (\d\d)\n")
_NUMBER = re.compile(r"[0-9]+")
_GUESS = re.compile(r"\\boxed\{(\d+)\}")


def guesses(episode: Episode) -> dict[str, float]:
    """Guesses until the number is found, with `FAILED_GUESSES` for a failure.

    Format errors are counted apart: an episode that one ended is not among the guesses. `guesses/possible` is the share
    of guesses that the hints leave possible, and `guesses/from_middle` the distance of these from the middle of what is
    left, in halves of its width: 0 for bisection, about a half for guesses at random. Both need `Bounds`.
    """
    broken = bool(episode.turns) and episode.turns[-1].reward < 0
    numbers = {"guesses/format_errors": float(broken)}
    if not broken:
        numbers["guesses/all"] = float(len(episode.turns) if episode.success else FAILED_GUESSES)
    placed = [one for turn in episode.turns if (one := _place(turn.observation, turn.action)) is not None]
    if placed:
        inside = [one for one in placed if abs(one) <= 1]
        numbers["guesses/possible"] = len(inside) / len(placed)
        if inside:
            numbers["guesses/from_middle"] = sum(map(abs, inside)) / len(inside)
    return numbers


def _place(observation: str, action: str) -> float | None:
    """Where a guess lies: -1 at the smallest possible number, 1 at the largest."""
    bounds, guess = _BOUNDS.search(observation), _GUESS.search(action)
    if bounds is None or guess is None:
        return None
    low, high = int(bounds[1]), int(bounds[2])
    if low == high:
        return 0.0 if int(guess[1]) == low else 2.0
    middle, half = (low + high) / 2, (high - low) / 2
    nearest = 0.5 if (high - low) % 2 else 0.0  # of an even count, either of the two in the middle bisects
    return (
        max(0.0, abs(int(guess[1]) - middle) - nearest) / (half - nearest)
        if half > nearest
        else (0.0 if abs(int(guess[1]) - middle) <= nearest else 2.0)
    )


def plain_guesses(episode: Episode) -> dict[str, float]:
    """Guesses of `game:PlainGuess`, with one more than there are for a failure, and whether the first is in the middle.

    The middle of the candidates is the given number, and bisection needs 2.2 guesses on average.
    """
    if not episode.turns:
        return {}
    middle, guess = re.search(r"It is (\d+)", episode.turns[0].observation), _NUMBER.findall(episode.turns[0].action)
    found = len(episode.turns) if episode.success else MAX_PLAIN_GUESSES + 1
    return {
        "guesses/all": float(found),
        "guesses/middle": float(middle is not None and bool(guess) and guess[-1] == middle[1]),
    }


def tool_calls(episode: Episode) -> dict[str, float]:
    """Calls of tools."""
    return {"tool/calls": float(sum(turn.tool_call for turn in episode.turns))}


def nothing(episode: Episode) -> dict[str, float]:
    """No numbers."""
    return {}


MEASURES: dict[str, Measure] = {
    "none": nothing,
    "guesses": guesses,
    "plain-guesses": plain_guesses,
    "tools": tool_calls,
}
