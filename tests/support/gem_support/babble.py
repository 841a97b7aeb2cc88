"""Environments that accept any text and give uneven rewards, so that all numbers in a test differ."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time
import zlib
from collections import defaultdict
from typing import Any
from weakref import WeakSet

import gem_core

UNDER_WAY: defaultdict[type, WeakSet[Any]] = defaultdict(WeakSet)
"""The environments of this process whose episode is under way, by class."""

WORDS = ["north", "south", "east", "west", "river", "stone", "light", "cloud"]


class Babble(gem_core.Env):
    """Episodes of 1 to 4 turns; the reward depends on the seed, the turn and the action.

    Where `COUNT_AT_ONCE` is set, `info["at_once"]` counts the episodes of the class that are under way in this process,
    with this one.
    """

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        UNDER_WAY[type(self)].add(self)
        self.turns_left = self.rng.randint(1, 4)
        return self._words(), {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.turns_left -= 1
        taste = zlib.crc32(action.encode("utf-8", "backslashreplace")) % 1000 / 1000
        over = self.turns_left == 0
        info = {"success": taste > 0.5}
        if "COUNT_AT_ONCE" in os.environ:  # not always: runs that play at other widths are compared
            info["at_once"] = len(UNDER_WAY[type(self)])
        if over:
            UNDER_WAY[type(self)].discard(self)
        return self._words(), taste + self.rng.uniform(-1, 1), over, False, info

    def close(self) -> None:
        UNDER_WAY[type(self)].discard(self)
        super().close()

    def sample_random_action(self) -> str:
        return self.rng.choice(WORDS)

    def _words(self) -> str:
        return " ".join(self.rng.choices(WORDS, k=3))


class Fragile(Babble):
    """Raises in its second turn for every third seed, and cannot start for every seventh."""

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        if seed is not None and seed % 7 == 0:
            raise RuntimeError("no such level")
        self.fails = seed is not None and seed % 3 == 0
        return super().reset(seed=seed)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if self.fails:
            raise RuntimeError("lost the connection")
        return super().step(action)


class Hostile(Babble):
    """Of eleven episodes, one raises, one hangs and one kills its process."""

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        match self.fate:
            case 0:
                raise RuntimeError("lost the connection")
            case 1:
                time.sleep(3600)
            case 2:
                os.kill(os.getpid(), signal.SIGKILL)
        return super().step(action)

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        self.fate = (seed or 0) % 11
        return super().reset(seed=seed)


class Chatty(Babble):
    """Observations far beyond any context."""

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        _, reward, _, _, info = super().step(action)
        return "north " * 200_000, reward, False, False, info


class Wander(Babble):
    """Episodes of 24 turns, which outlast a small context."""

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        opening = super().reset(seed=seed)
        self.turns_left = 24
        return opening


class Gated(Babble):
    """The episode that begins first in a process ends only after `LATER` others have begun."""

    LATER = 8
    _numbers = itertools.count()
    _have_begun = threading.Event()

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        self._number = next(self._numbers)
        if self._number >= self.LATER:
            self._have_begun.set()
        return super().reset(seed=seed)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if self._number == 0 and not self._have_begun.wait(60):
            raise RuntimeError(f"{self.LATER} others have not begun")
        return super().step(action)


def register() -> None:
    """Register the environments in this process."""
    for kind in (Babble, Fragile, Hostile, Chatty, Wander, Gated):
        gem_core.register(f"test:{kind.__name__}-v0", kind)
