"""Reading a bar chart."""

from __future__ import annotations

from gem_core.errors import EnvError
from gem_visual._question import Posed, Question
from gem_visual._shapes import COLORS, blank

_GRID = "#b0b0b0"


class BarChart(Question):
    """Bars in different colors over gray lines, one line per unit.

    Args:
        side: of the image in pixels.
        bars: number of bars, 2 to 5.
        highest: largest value; the smallest is 1.
        difference: ask for the difference of two bars rather than for the value of one.

    Raises:
        EnvError: bars or lines that do not fit.
    """

    def __init__(self, side: int = 56, bars: int = 3, highest: int = 5, difference: bool = False) -> None:
        if not 2 <= bars <= len(COLORS) or not 2 <= highest <= side // 8:
            raise EnvError(
                f"side={side}, bars={bars}, highest={highest}: give 2 to {len(COLORS)} bars, and 2 to {side // 8} units"
            )
        self.side, self.bars, self.highest, self.difference = side, bars, highest, difference

    def pose(self) -> Posed:
        """Draw the chart."""
        rng = self.rng
        image, draw = blank(self.side)
        unit, bottom = (self.side - 4) // self.highest, self.side - 2
        for line in range(self.highest + 1):
            draw.line((0, bottom - line * unit, self.side - 1, bottom - line * unit), fill=_GRID)
        colors = rng.sample([*COLORS], self.bars)
        values = [rng.randint(1, self.highest) for _ in colors]
        width = self.side / self.bars
        for place, (color, value) in enumerate(zip(colors, values, strict=True)):
            left = round(place * width + width / 5)
            right = round((place + 1) * width - width / 5)
            draw.rectangle((left, bottom - value * unit, right, bottom), fill=COLORS[color])
        first, second = rng.sample(range(self.bars), 2)
        scale = "Each gray line is one unit."
        if not self.difference:
            numbers = tuple(str(number) for number in range(1, self.highest + 1))
            return Posed(image, f"{scale} How high is the {colors[first]} bar?", str(values[first]), numbers)
        question = f"{scale} By how many units do the {colors[first]} bar and the {colors[second]} bar differ?"
        numbers = tuple(str(number) for number in range(self.highest))
        return Posed(image, question, str(abs(values[first] - values[second])), numbers)
