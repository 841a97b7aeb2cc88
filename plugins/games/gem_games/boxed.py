"""The action format of the games: `\\boxed{...}`, of which the last one counts."""

from __future__ import annotations

import re

FORMAT_ERROR_REWARD = -0.1
"""Reward of an action that has no box of the game's form; it ends the episode."""


def last_match(pattern: re.Pattern[str], action: str) -> re.Match[str] | None:
    """The last place where the pattern matches, in one pass over the action."""
    last = None
    for match in pattern.finditer(action):
        last = match
    return last


def boxed(content: object) -> str:
    """`\\boxed{content}`."""
    return f"\\boxed{{{content}}}"
