"""Vectors with upstream's arguments, on the engine of `gem_core.vector`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import partial
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from gem_core.env import Env, Info
from gem_core.errors import EnvFailure
from gem_core.failures import ErrorAction, FailurePolicy
from gem_core.seeding import fresh_seed
from gem_core.vector import Autoreset, HostedEnv, TaskPlan, is_whole_number
from gem_core.vector import VectorEnv as Engine

Steps: TypeAlias = "tuple[list[str], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], list[Info]]"
"""Observations, rewards, terminated, truncated and infos, one of each per action."""


class AutoresetMode(Enum):
    """When an ended environment starts its next episode."""

    NEXT_STEP = "NextStep"
    """In the next step, whose action is not used: reward 0, and no flag is set."""
    SAME_STEP = "SameStep"
    """In the step that ended it; `info["final_observation"]` and `info["final_info"]` have what it showed last."""


class VectorEnv(ABC):
    """Environments side by side, each built by a function of its own.

    An environment that raises stops the step with an `EnvFailure`; reset the vector before the next step.

    Args:
        env_ids: their names, one per environment.
        env_fns: build the environments; called once each here, and again after a failure.
        autoreset_mode: see `AutoresetMode`; its value is enough.
        seed: seed of the episodes that a reset without a seed starts; `None` draws one.

    Raises:
        ValueError: not one name per function, or an unknown mode.
    """

    def __init__(
        self,
        env_ids: Sequence[str],
        env_fns: Sequence[Callable[[], Env]],
        autoreset_mode: AutoresetMode | str = AutoresetMode.SAME_STEP,
        *,
        seed: int | None = None,
    ) -> None:
        if len(env_ids) != len(env_fns):
            raise ValueError(f"got {len(env_ids)} names for {len(env_fns)} environments; give one for each")
        self.env_ids, self.env_fns = list(env_ids), list(env_fns)
        self.num_envs = len(env_ids)
        self.autoreset_mode = AutoresetMode(autoreset_mode)
        self.envs = [build() for build in env_fns]
        """The environments. One that failed is replaced."""
        self._used: set[int] = set()
        self._ended: set[int] = set()
        same_step = self.autoreset_mode is AutoresetMode.SAME_STEP
        hosted = [HostedEnv(slot, partial(self._env, slot), autoreset=same_step) for slot in range(self.num_envs)]
        plan = TaskPlan(self.env_ids, self.num_envs, fresh_seed() if seed is None else seed)
        settings = {
            "autoreset": Autoreset.SAME_STEP if same_step else Autoreset.DISABLED,
            "failures": FailurePolicy(),
        }
        self._engine = self._built(hosted, plan, settings)
        # Names given here need not be registered, so no plugin is asked about them.
        self._engine.on_failure = _stop

    @abstractmethod
    def _built(self, hosted: list[HostedEnv], plan: TaskPlan, settings: dict[str, Any]) -> Engine:
        """The engine that plays these environments."""

    def reset(self, seed: int | Sequence[int] | None = None) -> tuple[list[str], list[Info]]:
        """Start an episode in every environment.

        Args:
            seed: environment `i` gets `seed + i`, or `seed[i]`, and plays what it would play alone with that seed.

        Raises:
            ValueError: a list with another number of seeds.
            EnvFailure: an environment failed.
        """
        self._ended.clear()
        if is_whole_number(seed):
            seed = [cast("int", seed) + slot for slot in range(self.num_envs)]
        return self._engine.reset(seed=seed)

    def step(self, actions: Sequence[str] | Mapping[int, str]) -> Steps:
        """Play one turn in every environment, or in those that the mapping names.

        Returns:
            See `Steps`; the arrays have the shape (number of actions,).

        Raises:
            ValueError: not one action per environment, or an environment that does not exist.
            EnvFailure: an environment failed.
        """
        try:
            if not self._ended or self._is_wrong(actions):  # then the engine says what is wrong
                return self._noted(actions, self._engine.step(actions))
            return self._noted(actions, self._reopening(_by_slot(actions)))
        except EnvFailure:
            self._engine.drain()  # what the others answered would come back with a later step
            raise

    def close(self) -> None:
        """Close every environment."""
        self._engine.close()

    def _noted(self, actions: Sequence[str] | Mapping[int, str], steps: Steps) -> Steps:
        if self.autoreset_mode is AutoresetMode.NEXT_STEP:
            ended = steps[2] | steps[3]
            self._ended.update(slot for slot, end in zip(_by_slot(actions), ended, strict=True) if end)
        return steps

    def _is_wrong(self, actions: Sequence[str] | Mapping[int, str]) -> bool:
        if isinstance(actions, Mapping):
            return not set(actions) <= set(range(self.num_envs))
        return isinstance(actions, str) or len(actions) != self.num_envs

    def _reopening(self, actions: Mapping[int, str]) -> Steps:
        """A step in which ended environments start their next episodes."""
        opened = [slot for slot in actions if slot in self._ended]
        observations, infos = self._engine.reset(slots=opened) if opened else ([], [])
        played = {slot: action for slot, action in actions.items() if slot not in self._ended}
        self._ended.difference_update(opened)
        turns = {
            slot: (observation, 0.0, False, False, info)
            for slot, observation, info in zip(opened, observations, infos, strict=True)
        }
        turns.update(zip(played, zip(*self._engine.step(played), strict=True), strict=True))
        chosen = [turns[slot] for slot in actions]
        return (
            [turn[0] for turn in chosen],
            np.array([turn[1] for turn in chosen], np.float64),
            np.array([turn[2] for turn in chosen], np.bool_),
            np.array([turn[3] for turn in chosen], np.bool_),
            [turn[4] for turn in chosen],
        )

    def _env(self, slot: int) -> Env:
        if slot in self._used:  # the engine closed the one before, which failed
            self.envs[slot] = self.env_fns[slot]()
        self._used.add(slot)
        return self.envs[slot]


def _stop(failure: EnvFailure) -> ErrorAction:
    return ErrorAction.RAISE


def _by_slot(actions: Sequence[str] | Mapping[int, str]) -> Mapping[int, str]:
    return actions if isinstance(actions, Mapping) else dict(enumerate(actions))
