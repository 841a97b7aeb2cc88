"""Shapes and colors that the images are made of."""

from __future__ import annotations

import math
from collections.abc import Mapping

from PIL import Image, ImageDraw

from gem_core.errors import EnvError

COLORS: Mapping[str, str] = {
    "red": "#d62728",
    "blue": "#1f57b4",
    "green": "#2c9a2c",
    "black": "#000000",
    "orange": "#ff9f0e",
}
"""Colors that are easy to tell apart, by their names."""
KINDS = ("circle", "square", "triangle")
UNIT = 28
"""Sides are a multiple of this: 14 pixels a patch, and 2 x 2 patches a token, in models of the Qwen-VL kind."""


def blank(side: int) -> tuple[Image.Image, ImageDraw.ImageDraw]:
    """A white square to draw on.

    Raises:
        EnvError: `side` is no multiple of `UNIT` above 0.
    """
    if side < UNIT or side % UNIT:
        raise EnvError(f"side={side}: give a multiple of {UNIT} pixels, for example 56")
    image = Image.new("RGB", (side, side), "white")
    return image, ImageDraw.Draw(image)


def draw_shape(draw: ImageDraw.ImageDraw, kind: str, middle: tuple[float, float], radius: float, color: str) -> None:
    """Draw a filled shape.

    Args:
        draw: what to draw on.
        kind: one of `KINDS`.
        middle: its middle in pixels.
        radius: of the circle around it, in pixels.
        color: a name of `COLORS`.
    """
    x, y = middle
    fill = COLORS[color]
    if kind == "circle":
        draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=fill)
    elif kind == "square":
        half = radius * 0.85
        draw.rectangle((x - half, y - half, x + half, y + half), fill=fill)
    else:
        draw.polygon(corners(3, middle, radius, -math.pi / 2), fill=fill)


def corners(number: int, middle: tuple[float, float], radius: float, angle: float) -> list[tuple[float, float]]:
    """The corners of a regular polygon.

    Args:
        number: of corners.
        middle: in pixels.
        radius: in pixels.
        angle: of the first corner in radians, clockwise from the right.
    """
    x, y = middle
    turns = [angle + 2 * math.pi * one / number for one in range(number)]
    return [(x + radius * math.cos(one), y + radius * math.sin(one)) for one in turns]
