"""One environment of a vector, where it runs. The vector decides what becomes of it, a backend where that is."""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Callable
from typing import Any

from gem_core.env import RESERVED, Env, Info, ResetResult
from gem_core.errors import EnvFailure
from gem_core.seeding import derive_seed
from gem_core.vector.calls import Call, Failure, Outcome, Replay, Reset, Transition, digest, failure_of


_FROZEN = {str, int, float, bool, type(None)}
_new = tuple.__new__  # what a NamedTuple's own constructor calls, at a third of its cost


class Member:
    """An environment that cannot harm its neighbours: whatever it does, a call has an outcome.

    The seed of episode `k` is `derive_seed(seed, stream, k)`, whatever happened before. After a failure the
    environment is closed; the next `Reset` or `Replay` builds a fresh one.

    Args:
        index: its place in the vector.
        build: builds the environment, wrappers included.
        stream: which sequence of seeds it plays; members of one group share it.
        autoreset: open the next episode at once where one ends.
    """

    def __init__(self, index: int, build: Callable[[], Env], stream: int, *, autoreset: bool = False) -> None:
        self.index = index
        self._build = build
        self._stream = stream
        self._autoreset = autoreset
        self._env: Env | None = None
        self._start = Reset(0, -1)

    def perform(self, call: Call, emit: Callable[[int, Outcome], None]) -> None:
        """Emit the outcome of a call; a second one where an episode ended and the next one is opened at once."""
        outcome = self.answer(call)
        if self._autoreset and type(outcome) is Transition and (outcome.terminated or outcome.truncated):
            emit(self.index, outcome._replace(info=_own(outcome.info)))
            outcome = self.answer(Reset(self._start.seed, self._start.episode + 1))
        emit(self.index, outcome)

    def answer(self, call: Call) -> Outcome:
        """The outcome of this call alone."""
        try:
            if type(call) is str:
                return _checked_step(self._env.step(call))  # pyright: ignore[reportOptionalMemberAccess]
            return self._reset(call) if isinstance(call, Reset) else self._replay(call)  # pyright: ignore[reportArgumentType]
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

    def _replay(self, call: Replay) -> Transition | Failure:
        self.close()
        env = self._env = self._build()
        observation, _ = self._reset(call.start)
        shown = digest(0, observation, 0.0)
        for action in call.actions:
            transition = _checked_step(env.step(action))
            shown = digest(shown, transition.observation, transition.reward)
        if shown != call.digest:
            self.close()
            return Failure(
                "EnvFailure: its environment was lost, and a fresh one with the same seed and actions showed something "
                "else; an environment that draws only from self.rng can be brought back",
                kind="diverged",
                repeatable=False,
            )
        return _checked_step(env.step(call.action))

    def close(self) -> None:
        """Close the environment; what it raises meanwhile is ignored."""
        env, self._env = self._env, None
        if env is not None:
            with contextlib.suppress(Exception, SystemExit):
                env.close()


def _own(info: Info) -> Info:
    # The reset that follows must not change what the ended episode showed.
    try:
        return {key: value if type(value) in _FROZEN else copy.deepcopy(value) for key, value in info.items()}
    except Exception:  # something that cannot be copied is shown as it is
        return info


def _checked_reset(result: Any) -> ResetResult:
    try:
        observation, info = result
    except (TypeError, ValueError):
        raise EnvFailure(f"reset() gave {result!r:.200}, not (observation, info)") from None
    if not isinstance(observation, str):
        raise _no_text("reset", observation)
    return observation, _checked_info(info, "reset")


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
    if not isinstance(observation, str):
        raise _no_text("step", observation)
    return _new(Transition, (observation, number, bool(terminated), bool(truncated), _checked_info(info, "step")))


def _checked_info(info: Any, method: str) -> Info:
    if not isinstance(info, dict):
        raise EnvFailure(f"{method}() gave the info {info!r:.200}, which is not a dict")
    # A new dict, as the environment may go on changing its own.
    if RESERVED.isdisjoint(info):  # pyright: ignore[reportUnknownArgumentType]
        return dict(info)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return {f"env_{key}" if key in RESERVED else key: value for key, value in info.items()}  # pyright: ignore[reportUnknownVariableType]


def _no_text(method: str, observation: Any) -> EnvFailure:
    return EnvFailure(f"{method}() gave the observation {observation!r:.200}, which is not a string")
