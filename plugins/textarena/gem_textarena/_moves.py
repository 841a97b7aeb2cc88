"""How moves are read from actions, and texts of TextArena are cleaned."""

from __future__ import annotations

import re

MAX_MOVE_LENGTH = 100
"""Characters of a move; those of TextArena's games stay below 40."""

_BRACKETS = re.compile(r"\[([^\[\]]*)\]")


def read_move(action: str) -> str:
    """The content of the last brackets, or the action if it has none; nothing where no game could have such a move."""
    brackets = _BRACKETS.findall(action)
    move = (brackets[-1] if brackets else action).strip()
    plain = len(move) <= MAX_MOVE_LENGTH and move.isascii() and move.isprintable() and not set("[]") & set(move)
    return move if plain else ""


def tidy(text: str) -> str:
    """Without empty lines at its ends, and without white space at the ends of its lines."""
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")
