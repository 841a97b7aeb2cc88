"""Environments of Gymnasium for the tests; importing this module registers them."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from gem_gym.codec import Codec


class Vault(gymnasium.Env[Any, Any]):
    """Every kind of space at once: the lock opens for the digit that is shown."""

    def __init__(self, digits: int = 4) -> None:
        self.action_space = spaces.Dict(
            {
                "digit": spaces.Discrete(digits, start=1),
                "wheels": spaces.MultiDiscrete([3, 2]),
                "levers": spaces.MultiBinary(2),
                "force": spaces.Box(-0.7, 0.1, (2,)),
                "word": spaces.Tuple((spaces.Text(3, charset='a{}"\\'), spaces.Discrete(2))),
            }
        )
        self.observation_space = spaces.Dict(
            {"digit": spaces.Discrete(digits, start=1), "dial": spaces.Box(0, 9, (2, 3), np.int64)}
        )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.digit = int(self.np_random.integers(1, self.action_space["digit"].n + 1))
        return self._seen(), {"mask": np.ones(2, np.int8), "error": "none", "nan": float("nan"), "env": self}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        assert self.action_space.contains(action)
        opened = action["digit"] == self.digit
        return self._seen(), np.float64(opened), bool(opened), False, {"is_success": np.bool_(opened)}

    def _seen(self) -> Any:
        return {"digit": self.digit, "dial": self.np_random.integers(0, 10, (2, 3))}


class Handle(gymnasium.Env[Any, Any]):
    """Cannot be copied, like a simulator."""

    action_space = spaces.Discrete(2)
    observation_space = spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.handle = (number for number in range(3))
        return 0, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return 1, 0.0, False, False, {}


class Picture(Handle):
    """Shows a picture."""

    observation_space = spaces.Box(0, 255, (210, 160, 3), np.uint8)


class Linked(Handle):
    """Its actions are graphs."""

    action_space = spaces.Graph(spaces.Discrete(2), None)


class Shouted(Codec):
    """A codec of one's own: names for the actions, and the observation in words."""

    actions = ("Hold", "Go on")

    def task(self) -> str:
        return "Go on until you are there."

    def observe(self, observation: Any, info: dict[str, Any]) -> str:
        return "YOU ARE THERE!" if observation else "NOT YET!"


gymnasium.register("Tests/Vault-v0", Vault, max_episode_steps=6)
gymnasium.register("Tests/Handle-v0", Handle)
gymnasium.register("Tests/Picture-v0", Picture)
gymnasium.register("Tests/Linked-v0", Linked)
