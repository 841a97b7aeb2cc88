"""Environments that show images. Worker processes import this, so it imports nothing heavy."""

from __future__ import annotations

import io
from typing import Any

from gem_core import Env
from gem_core.image import PngImage


def drawn(number: int, side: int = 56) -> Any:
    """An image that no other number has."""
    from PIL import Image  # which need not be installed

    image = Image.new("RGB", (side, side), "white")
    image.paste((number * 40 % 256, number, 0), (number % 50, 0, number % 50 + 5, 9))
    return image


def uri(number: int, side: int = 56) -> str:
    return PngImage.of(drawn(number, side)).uri


class Gallery(Env):
    """Shows its seed's images: as many as there were turns and one more, each kind of source once."""

    def reset(self, seed: int | None = None, **options: Any):
        super().reset(seed=seed)
        self.first, self.turn = self.rng.randint(0, 40), 0
        return "look", {"images": [drawn(self.first)]}

    def step(self, action: str):
        self.turn += 1
        file = io.BytesIO()
        drawn(self.first + self.turn).save(file, format="PNG")
        shown = [file.getvalue(), uri(self.first), PngImage.of(drawn(7))][: self.turn]
        return f"again {action}", float(self.turn), self.turn == 3, False, {"images": shown, "kept": self.turn}

    def sample_random_action(self) -> str:
        return self.rng.choice(["left", "right"])


class Restless(Gallery):
    """Counts its resets in all of its kind, so that a replay shows other images and the same text."""

    drawn = 0

    def reset(self, seed: int | None = None, **options: Any):
        super().reset(seed=seed)
        Restless.drawn += 1
        return "look", {"images": [drawn(Restless.drawn)]}


class Spoiled(Gallery):
    """Shows what is no image."""

    def step(self, action: str):
        return "", 0.0, False, False, {"images": ["https://example.org/image.png"]}
