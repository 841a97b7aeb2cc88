"""An environment that shows images, some of them beside each other, and gives uneven rewards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PIL import Image

import gem_core
from gem_tiny import tiny_image_processor, tiny_tokenizer, tiny_vision_model

ENV = "test:Glance-v0"
UNANNOUNCED = "test:Peek-v0"
"""The same without the tag that environments with images have."""


class Glance(gem_core.Env):
    """Two turns with none, one or two images each, and rewards that are drawn."""

    text = "look at it"

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.turn = 0
        return self.text, {"images": self._drawn()}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.turn += 1
        done = self.turn == 2
        return "go on", self.rng.random(), done, False, {"images": [] if done else self._drawn(), "success": done}

    def sample_random_action(self) -> str:
        return self.rng.choice(["left", "right", "up"])

    def _drawn(self) -> list[Any]:
        return [self._image() for _ in range(self.rng.randint(0, 2))]

    def _image(self) -> Any:
        image = Image.new("RGB", (56, 56), "white")
        left, top = self.rng.randint(0, 40), self.rng.randint(0, 40)
        image.paste((self.rng.randint(0, 255), 0, 0), (left, top, left + 12, top + 12))
        return image


def register() -> None:
    """Register both ids in this process."""
    gem_core.register(ENV, Glance, tags=("images",))
    gem_core.register(UNANNOUNCED, Glance)


def saved_model(folder: Path) -> Path:
    """A tiny vision-language model with its tokenizer and image processor, saved in a folder."""
    tokenizer = tiny_tokenizer([ENV], episodes=20, images=True)
    for part in (tiny_vision_model(tokenizer, hidden=32, layers=1, seed=0), tokenizer, tiny_image_processor()):
        part.save_pretrained(folder)
    return folder
