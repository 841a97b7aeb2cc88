"""How many shapes of a kind are there?"""

from __future__ import annotations

from gem_core.errors import EnvError
from gem_visual._question import Posed, Question
from gem_visual._shapes import COLORS, KINDS, blank, draw_shape

_CELL = 14
"""Pixels of a cell, in which there is at most one shape."""


class Count(Question):
    """Shapes of several kinds and colors, at random places; the question is about one kind.

    Args:
        side: of the image in pixels.
        most: largest number of shapes of the kind in question; the smallest is 1.
        kinds: number of kinds of shapes.

    Raises:
        EnvError: too many shapes for the image, or no such number of kinds.
    """

    def __init__(self, side: int = 56, most: int = 4, kinds: int = 1) -> None:
        cells = (side // _CELL) ** 2
        if not 1 <= most * kinds <= cells or not 1 <= kinds <= len(KINDS):
            raise EnvError(
                f"most={most}, kinds={kinds}: an image of {side} pixels has room for {cells} shapes, and there are "
                f"{len(KINDS)} kinds"
            )
        self.side, self.most, self.kinds = side, most, kinds

    def pose(self) -> Posed:
        """Draw the shapes; those of other kinds are up to `most` each."""
        rng = self.rng
        image, draw = blank(self.side)
        numbers = [rng.randint(1, self.most), *(rng.randint(0, self.most) for _ in range(self.kinds - 1))]
        kinds = rng.sample(KINDS, self.kinds) if self.kinds > 1 else [KINDS[0]]
        shapes = [kind for kind, number in zip(kinds, numbers, strict=True) for _ in range(number)]
        across = self.side // _CELL
        places = rng.sample(range(across * across), len(shapes))
        for kind, place in zip(shapes, places, strict=True):
            row, column = divmod(place, across)
            middle = (column * _CELL + _CELL / 2 + rng.randint(-1, 1), row * _CELL + _CELL / 2 + rng.randint(-1, 1))
            draw_shape(draw, kind, middle, rng.randint(3, 5), rng.choice([*COLORS]))
        choices = tuple(str(number) for number in range(1, self.most + 1))
        return Posed(image, f"How many {kinds[0]}s are there?", str(numbers[0]), choices)
