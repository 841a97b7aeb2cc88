"""Environments for the tests of Ray. Actors import this, so it imports no pytest."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from typing import Any

from gem_core import Env
from gem_core.vector import _wire as wire
from gem_core.vector._calls import Transition


class Walk(Env):
    """Goes on for one to four turns, and does what an action of its name says."""

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.left = self.rng.randint(1, 4)
        return f"start {self.rng.random()}", {"left": self.left, "pid": os.getpid()}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if action in TROUBLES:
            TROUBLES[action]()
        self.left -= 1
        info: dict[str, Any] = {"pid": os.getpid()}
        if action == "unsendable":
            info["function"] = lambda: None
        return f"{action} {self.rng.random()}", self.rng.random(), self.left == 0, False, info

    def sample_random_action(self) -> str:
        return self.rng.choice("abc")


class Forging(Walk):
    """Answers every call that follows with a turn."""

    def step(self, action: str) -> Any:
        forged = wire.listed([wire.packed(0, Transition("forged", 1.0, False, False, {}))])
        import gem_ray.vector  # it needs Ray

        gem_ray.vector.listed = lambda answers: forged
        return "", 0.0, True, False, {}


class Long(Walk):
    """Goes on for many turns."""

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        observation, info = super().reset(seed=seed)
        self.left = 40
        return observation, info


class Slow(Long):
    """Takes its time for every call."""

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        time.sleep(0.2)
        return super().reset(seed=seed)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        time.sleep(0.2)
        return super().step(action)


def _raise() -> None:
    raise OSError("gone")


TROUBLES: dict[str, Callable[[], object]] = {
    "raise": _raise,
    "wait": lambda: time.sleep(1.0),
    "hang": lambda: time.sleep(600),
    "die": lambda: os.kill(os.getpid(), signal.SIGKILL),
}


class Recorded(Walk):
    """A walk whose infos are the same in every process, and which fails now and then."""

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        observation, info = super().reset(seed=seed)
        return observation, {"left": info["left"]}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if self.rng.random() < 0.1:
            raise OSError("gone")
        observation, reward, terminated, truncated, _ = super().step(action)
        return observation, reward, terminated, truncated, {"left": self.left, "success": terminated}


class Travels(Env):
    """Five turns that show on which node they were played."""

    def __init__(self, characters: int = 10) -> None:
        super().__init__()
        self.characters = characters

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.left = 5
        return f"start {self.rng.random()}", self._info()

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.left -= 1
        text = f"{action} {self.rng.random()} ".ljust(self.characters, "x")
        return text, self.rng.random(), self.left == 0, False, self._info()

    def sample_random_action(self) -> str:
        return self.rng.choice("abc")

    def _info(self) -> dict[str, Any]:
        import ray

        return {"node": ray.get_runtime_context().get_node_id()} if ray.is_initialized() else {}
