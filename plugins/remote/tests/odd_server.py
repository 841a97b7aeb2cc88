"""`gem-core serve` with environments that only tests want; run as a program with the command's arguments."""

from __future__ import annotations

import threading
from typing import Any

import gem_core
from gem_core import Env

RELEASE = threading.Event()


class Mazed(ValueError):
    """An exception of the environment's own."""


class Odd(Env):
    """Does what the action says; needs a number of sorts, shows the arguments that it got."""

    def __init__(self, size: int = 3) -> None:
        self.size = size

    def reset(self, seed: int | None = None, row: int = 0, **options: Any) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        return f"row {row} of {self.size}, {self.rng.random()}", {"pair": (1, 2), "big": 2**70, "odd": "\ud800"}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if action == "raise":
            raise Mazed("no exit")
        if action.startswith("quote"):
            raise Mazed(action)
        if action == "leave":
            raise SystemExit(3)
        if action == "hang":
            RELEASE.wait()
        if action == "object":
            return "", 0.0, False, False, {"object": object()}
        if action == "garbage":
            return "three", 1, True  # type: ignore[return-value]
        if action == "image":
            from PIL import Image

            return "", 0.0, False, False, {"images": [Image.new("RGB", (28, 14))]}
        if action == "wide":
            return "", 0.0, False, False, {"texts": ["x" * 1_000_000] * 2000}
        if action == "long":
            return "x" * 100_000, 0.0, False, False, {}
        return action, self.rng.random(), action == "end", False, {"success": True, "error": "its own"}

    def sample_random_action(self) -> str:
        return self.rng.choice("abc")


class Stuck(Odd):
    """Cannot be closed."""

    def close(self) -> None:
        raise SystemExit


class Shifting(Odd):
    """An episode is never the same."""

    episodes = 0

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        Shifting.episodes += 1
        return str(Shifting.episodes), {}


if __name__ == "__main__":
    gem_core.register("demo:Odd-v0", Odd)
    gem_core.register("demo:Shifting-v0", Shifting)
    gem_core.register("demo:Stuck-v0", Stuck)
    from gem_core.cli import main

    main()
