"""One environment of a vector: its seeds, its autoreset and its failures. Backends only decide where it runs."""

from __future__ import annotations

import contextlib
import logging
import math
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

from gem_core.env import RESERVED, Env, Info, ResetResult
from gem_core.errors import EnvFailure
from gem_core.seeding import derive_seed
from gem_core.vector.autoreset import Autoreset

_log = logging.getLogger("gem_core.vector")
_logged: set[tuple[object, ...]] = set()
"""Kinds of failure that were logged as a warning in this process."""


class Transition(NamedTuple):
    """What one environment answered to one action; `Env.step` explains the fields."""

    observation: str
    reward: float
    terminated: bool
    truncated: bool
    info: Info

    @property
    def done(self) -> bool:
        """The episode ended with this transition."""
        return self.terminated or self.truncated


class Member:
    """An environment that cannot harm its neighbours.

    The seed of its episode `k` is `derive_seed(seed, stream, k)`, whatever happened before. An environment that
    raises, or returns what is not a transition, ends its episode truncated with `info["error"]`, and is built anew
    for the next one. The first failure of each kind is logged as a warning. No method raises for the environment's
    sake.

    Args:
        build: builds the environment, wrappers included.
        stream: which sequence of seeds it plays; members of one group share it.
        seed: the vector's seed.
        autoreset: when to start the next episode.
        env_id: what the log calls it.
    """

    def __init__(
        self, build: Callable[[], Env], stream: int, seed: int, autoreset: Autoreset, env_id: str = "an environment"
    ) -> None:
        self._build = build
        self._stream = stream
        self._seed = seed
        self._autoreset = autoreset
        self._env_id = env_id
        self._env: Env | None = None
        self._episode = -1
        self._over = True
        self._broken: str | None = None

    def reset(self, seed: int | None = None) -> ResetResult:
        """Start the next episode; with a new vector seed, the first one.

        Returns:
            Observation and info. An environment that fails here shows an empty observation and `info["error"]`, and
            its first step ends the episode truncated.
        """
        if seed is not None:
            self._seed, self._episode = seed, -1
        self._episode += 1
        episode_seed = derive_seed(self._seed, self._stream, self._episode)
        engine_info: Info = {"seed": episode_seed, "episode": self._episode}
        self._over, self._broken = False, None
        try:
            if self._env is None:
                self._env = self._build()
            observation, info = _checked_reset(self._env.reset(seed=episode_seed))
            return observation, {**info, **engine_info}
        except (Exception, SystemExit) as error:
            self._broken = self._discard(error)
            return "", {"error": self._broken, **engine_info}

    def step(self, action: str) -> Transition:
        """Play one turn and autoreset as asked."""
        if self._over:
            if self._autoreset is Autoreset.NEXT_STEP:
                observation, info = self.reset()
                return Transition(observation, 0.0, False, False, info)
            return Transition("", 0.0, False, True, {"error": "stepped after its episode ended; reset it first"})
        transition = self._play(action)
        self._over = transition.done
        if transition.done and self._autoreset is Autoreset.SAME_STEP:
            observation, info = self.reset()
            final = {"final_observation": transition.observation, "final_info": transition.info}
            return transition._replace(observation=observation, info={**info, **final})
        return transition

    def _play(self, action: str) -> Transition:
        if self._env is None:
            return _cut_off(self._broken or "the environment was never reset")
        try:
            return _checked_step(self._env.step(action))
        except (Exception, SystemExit) as error:
            return _cut_off(self._discard(error))

    def _discard(self, error: BaseException) -> str:
        _log_failure(self._env_id, error)
        self.close()
        return f"{type(error).__name__}: {error}"

    def close(self) -> None:
        """Close the environment; what it raises meanwhile is ignored."""
        env, self._env = self._env, None
        if env is not None:
            with contextlib.suppress(Exception, SystemExit):
                env.close()

    @property
    def env(self) -> Env | None:
        """The environment, where it runs in this process and stands."""
        return self._env


def _log_failure(env_id: str, error: BaseException) -> None:
    # An environment that fails in every episode must not train unnoticed, nor fill the log.
    cause = error.__cause__ or error
    place = traceback.extract_tb(cause.__traceback__)[-1:]
    kind = (env_id, type(cause), *((frame.filename, frame.lineno) for frame in place))
    level = logging.DEBUG if kind in _logged else logging.WARNING
    _logged.add(kind)
    message = "%s failed and is built anew for its next episode; further failures of this kind are logged as debug"
    _log.log(level, message, env_id, exc_info=error)


def _cut_off(error: str) -> Transition:
    return Transition("", 0.0, False, True, {"error": error})


def _checked_reset(result: Any) -> ResetResult:
    try:
        observation, info = result
    except (TypeError, ValueError):
        raise EnvFailure(f"reset() gave {result!r:.200}, not (observation, info)") from None
    return _text(observation, "reset"), _mapping(info, "reset")


def _checked_step(result: Any) -> Transition:
    try:
        observation, reward, terminated, truncated, info = result
    except (TypeError, ValueError):
        raise EnvFailure(
            f"step() gave {result!r:.200}, not (observation, reward, terminated, truncated, info)"
        ) from None
    try:
        number = float(reward)
    except (TypeError, ValueError):
        raise EnvFailure(f"step() gave the reward {reward!r:.200}, which is not a number") from None
    if not math.isfinite(number):
        raise EnvFailure(f"step() gave the reward {number}, which is not finite")
    return Transition(_text(observation, "step"), number, bool(terminated), bool(truncated), _mapping(info, "step"))


def _text(observation: Any, method: str) -> str:
    if not isinstance(observation, str):
        raise EnvFailure(f"{method}() gave the observation {observation!r:.200}, which is not a string")
    return observation


def _mapping(info: Any, method: str) -> Info:
    if not isinstance(info, dict):
        raise EnvFailure(f"{method}() gave the info {info!r:.200}, which is not a dict")
    # A new dict, as the environment may go on changing its own.
    return {f"env_{key}" if key in RESERVED else key: value for key, value in info.items()}  # pyright: ignore[reportUnknownVariableType]
