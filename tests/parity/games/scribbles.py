"""Actions put together from pieces of boxes: most are malformed, some are moves."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

PIECES = (
    "\\boxed{",
    "\\boxed{",
    "}",
    "}",
    " ",
    "  ",
    "\n",
    "\t",
    "\u00a0",
    "\u200b",
    ",",
    "-",
    "\0",
    "\ud800",
    "{",
    "\\",
)
DIGITS = ("0", "1", "2", "3", "4", "5", "01", "10", "-1", "\u0663", "\u00b2", "9" * 20, "9" * 5000)


def scribbles(player: random.Random, words: Sequence[str], moves: Sequence[str], count: int) -> Iterator[str]:
    """Actions of three kinds: pieces at random, a box with pieces in it, and a box with some move in it.

    Args:
        player: draws them.
        words: what else, besides white space and the like, may stand in a box.
        moves: right contents of a box; now and then with a piece too many.
        count: how many actions.
    """
    for _ in range(count):
        pieces = player.choices((*PIECES, *words), k=player.randint(0, 8))
        kind = player.randrange(3)
        if kind == 0:
            yield "".join(pieces)
        elif kind == 1:
            yield f"\\boxed{{{''.join(pieces[:4])}}}"
        else:
            move = player.choice(moves)
            cut = player.randint(0, len(move))
            extra = player.choice((*PIECES, *words, "", "", ""))
            yield f"{''.join(pieces[:2])}\\boxed{{{move[:cut]}{extra}{move[cut:]}}}{''.join(pieces[2:4])}"
