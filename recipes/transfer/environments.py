"""Corridors of several lengths, each with an id of its own, so that one batch can mix them."""

from __future__ import annotations

import gem_core

TRAINED = (5, 7, 9)
PLAYED = (*TRAINED, 11)
"""The last length is in no training."""


def corridor(length: int) -> str:
    """The id of a length."""
    return f"recipe:Corridor{length}-v0"


for _length in PLAYED:
    # As many turns for each cell as in `game:Corridor-v0`.
    gem_core.register(
        corridor(_length), "gem_games.corridor:Corridor", kwargs={"length": _length, "max_turns": _length + 1}
    )
