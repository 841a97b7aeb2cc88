"""Numbers of an episode that studies report. A run names one with `measure`."""

from __future__ import annotations

from gem_core.episode import Episode
from recipes.meter import Measure

FAILED_GUESSES = 50
"""What an episode counts that does not find the number."""


def guesses(episode: Episode) -> dict[str, float]:
    """Guesses until the number is found, with `FAILED_GUESSES` for a failure.

    An episode that a format error ended is counted apart, and not among the guesses.
    """
    broken = any(turn.info.get("format_error") for turn in episode.turns) or episode.turns[-1].reward < 0
    numbers = {"guesses/format_errors": float(broken)}
    if not broken:
        numbers["guesses/all"] = float(len(episode.turns) if episode.success else FAILED_GUESSES)
    return numbers


def tool_calls(episode: Episode) -> dict[str, float]:
    """Calls of tools."""
    return {"tool/calls": float(sum(turn.tool_call for turn in episode.turns))}


def nothing(episode: Episode) -> dict[str, float]:
    """No numbers."""
    return {}


MEASURES: dict[str, Measure] = {"none": nothing, "guesses": guesses, "tools": tool_calls}
