"""Which shape is the largest?"""

from __future__ import annotations

from gem_core.errors import EnvError
from gem_visual._question import Posed, Question
from gem_visual._shapes import COLORS, KINDS, blank, draw_shape

_SMALLEST = 4


class Compare(Question):
    """Shapes of one kind in different colors and sizes; the answer is the color of the largest or of the smallest.

    Args:
        side: of the image in pixels.
        shapes: number of shapes, 2 to 4; each has a quarter of the image.
        least_difference: between the radii of two shapes, in pixels.

    Raises:
        EnvError: the sizes do not fit the image.
    """

    def __init__(self, side: int = 56, shapes: int = 2, least_difference: int = 6) -> None:
        room = side // 4 - 1 - _SMALLEST - (shapes - 1) * least_difference
        if not 2 <= shapes <= 4 or least_difference < 1 or room < 0:
            raise EnvError(
                f"side={side}, shapes={shapes}, least_difference={least_difference}: give 2 to 4 shapes whose radii, "
                f"from {_SMALLEST} pixels up, fit a quarter of the image"
            )
        self.side, self.shapes, self.least_difference, self._room = side, shapes, least_difference, room

    def pose(self) -> Posed:
        """Draw the shapes, one in each quarter."""
        rng = self.rng
        image, draw = blank(self.side)
        colors = rng.sample([*COLORS], self.shapes)
        slack = sorted(rng.randint(0, self._room) for _ in colors)
        radii = [_SMALLEST + extra + place * self.least_difference for place, extra in enumerate(slack)]
        kind, quarter = rng.choice(KINDS), self.side / 4
        for color, radius, place in zip(colors, radii, rng.sample(range(4), self.shapes), strict=True):
            row, column = divmod(place, 2)
            draw_shape(draw, kind, (quarter * (1 + 2 * column), quarter * (1 + 2 * row)), radius, color)
        smallest = rng.random() < 0.5
        answer = colors[0] if smallest else colors[-1]
        question = f"Which color has the {'smallest' if smallest else 'largest'} {kind}?"
        return Posed(image, question, answer, tuple(sorted(colors)))
