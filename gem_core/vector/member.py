"""One environment of a vector, where it runs. The vector decides what becomes of it, a backend where that is."""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Callable, Iterator
from typing import Any

from gem_core.env import RESERVED, Env, Info, ResetResult
from gem_core.errors import EnvFailure
from gem_core.seeding import derive_seed
from gem_core.vector.calls import Call, Failure, Outcome, Replay, Reset, Step, Transition, digest, failure_of


class Member:
    """An environment that cannot harm its neighbours: whatever it does, a call has an outcome.

    The seed of episode `k` is `derive_seed(seed, stream, k)`, whatever happened before. After a failure the
    environment is closed; the next `Reset` or `Replay` builds a fresh one.

    Args:
        build: builds the environment, wrappers included.
        stream: which sequence of seeds it plays; members of one group share it.
        autoreset: open the next episode at once where one ends.
    """

    def __init__(self, build: Callable[[], Env], stream: int, *, autoreset: bool = False) -> None:
        self._build = build
        self._stream = stream
        self._autoreset = autoreset
        self._env: Env | None = None
        self._start = Reset(0, -1)

    def perform(self, call: Call) -> Iterator[Outcome]:
        """The outcome of a call; two of them where an episode ended and the next one is opened at once."""
        outcome = self.answer(call)
        if not (self._autoreset and isinstance(outcome, Transition) and outcome.done):
            yield outcome
        else:
            yield outcome._replace(info=_own(outcome.info))
            yield self.answer(Reset(self._start.seed, self._start.episode + 1))

    def answer(self, call: Call) -> Outcome:
        """The outcome of this call alone."""
        try:
            if isinstance(call, Step):
                return self._step(call.action)
            if isinstance(call, Reset):
                return self._reset(call)
            return self._replay(call)
        except (Exception, SystemExit) as error:
            self.close()
            return failure_of(error)

    def _reset(self, start: Reset) -> ResetResult:
        self._start = start
        if self._env is None:
            self._env = self._build()
        seed = derive_seed(start.seed, self._stream, start.episode)
        observation, info = _checked_reset(self._env.reset(seed=seed))
        return observation, {**info, "seed": seed, "episode": start.episode}

    def _step(self, action: str) -> Transition:
        assert self._env is not None, "stepped before a reset"
        return _checked_step(self._env.step(action))

    def _replay(self, call: Replay) -> Transition | Failure:
        self.close()
        observation, _ = self._reset(call.start)
        shown = digest(0, observation, 0.0)
        for action in call.actions:
            transition = self._step(action)
            shown = digest(shown, transition.observation, transition.reward)
        if shown != call.digest:
            self.close()
            return Failure(
                "EnvFailure: its environment was lost, and a fresh one with the same seed and actions showed something "
                "else; an environment that draws only from self.rng can be brought back",
                kind="diverged",
                repeatable=False,
            )
        return self._step(call.action)

    def close(self) -> None:
        """Close the environment; what it raises meanwhile is ignored."""
        env, self._env = self._env, None
        if env is not None:
            with contextlib.suppress(Exception, SystemExit):
                env.close()


def _own(info: Info) -> Info:
    # The reset that follows must not change what the ended episode showed.
    try:
        return copy.deepcopy(info)
    except Exception:  # something that cannot be copied is shown as it is
        return info


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
