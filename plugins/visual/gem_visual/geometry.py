"""Figures: how many corners, and which area?"""

from __future__ import annotations

import math
from typing import Literal

from gem_core.errors import EnvError
from gem_visual._question import Posed, Question
from gem_visual._shapes import COLORS, blank, corners

_CELL = 14
_GRID = "#b0b0b0"
_MAX_CORNERS = 7


class Geometry(Question):
    """A figure, and a question about it.

    `corners` asks for the corners of a regular polygon, of 3 to 7. `area` asks for the area of a right triangle or a
    rectangle whose corners are on the lines of squared paper, in squares; it is always a whole number.

    Args:
        side: of the image in pixels.
        task: the question.

    Raises:
        EnvError: no such task.
    """

    def __init__(self, side: int = 56, task: Literal["corners", "area"] = "corners") -> None:
        if task not in ("corners", "area"):
            raise EnvError(f"task={task!r}: give 'corners' or 'area'")
        self.side, self.task = side, task

    def pose(self) -> Posed:
        """Draw the figure."""
        return self._corners() if self.task == "corners" else self._area()

    def _corners(self) -> Posed:
        rng = self.rng
        image, draw = blank(self.side)
        number = rng.randint(3, _MAX_CORNERS)
        radius = rng.uniform(0.3, 0.45) * self.side
        places = corners(number, (self.side / 2, self.side / 2), radius, rng.uniform(0, 2 * math.pi))
        draw.polygon(places, fill=COLORS[rng.choice([*COLORS])])
        numbers = tuple(str(one) for one in range(3, _MAX_CORNERS + 1))
        return Posed(image, "How many corners does the figure have?", str(number), numbers)

    def _area(self) -> Posed:
        rng = self.rng
        image, draw = blank(self.side)
        cells = self.side // _CELL
        width, height = rng.randint(2, cells - 1), rng.randint(2, cells - 1)
        triangle = rng.random() < 0.5
        if triangle and width * height % 2:
            width -= 1
        left, top = rng.randint(0, cells - width), rng.randint(0, cells - height)
        box = [(left, top), (left + width, top), (left + width, top + height), (left, top + height)]
        if triangle:
            del box[rng.randrange(4)]
        color = COLORS[rng.choice([*COLORS])]
        draw.polygon([(x * _CELL, y * _CELL) for x, y in box], fill=color)
        for line in range(cells + 1):
            place = min(line * _CELL, self.side - 1)
            draw.line((place, 0, place, self.side - 1), fill=_GRID)
            draw.line((0, place, self.side - 1, place), fill=_GRID)
        area = width * height // 2 if triangle else width * height
        numbers = tuple(str(one) for one in range(1, (cells - 1) ** 2 + 1))
        return Posed(image, "How many squares of the paper does the figure cover in all?", str(area), numbers)
