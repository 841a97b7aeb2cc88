"""One environment of a vector, where it runs. The vector decides what becomes of it, a backend where that is."""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Callable, Iterator
from typing import Any

from gem_core.env import RESERVED, Env, Info, ResetResult
from gem_core.errors import OUT_OF_ROOM, FailureKind, GemError, convert_errors
from gem_core.image import IMAGES
from gem_core.partner import PARTNER_REPLIES
from gem_core.vector._calls import (
    NOT_PLAIN,
    CallOutcome,
    EnvCall,
    FailedCall,
    InvalidAnswer,
    Replay,
    Reset,
    Transition,
    checked_info,
    digest,
    failure_of,
    new_transition,
)

_INFINITY = math.inf
_FROZEN = {bool, str, float, int, bytes, type(None)}
_MAX_CAUSES = 100


class HostedEnv:
    """An environment that cannot harm its neighbours: whatever it does, a call has an outcome.

    After a failure the environment is closed; the next `Reset` or `Replay` builds a fresh one.

    Args:
        slot: number of its slot in the vector.
        build: builds the environment, wrappers included.
        autoreset: open the next episode at once where one ends.
        pack: makes data of a slot's answer, which goes to another process; one that cannot go there is a failure.
    """

    def __init__(
        self,
        slot: int,
        build: Callable[[], Env],
        *,
        autoreset: bool = False,
        pack: Callable[[int, CallOutcome], bytes] | None = None,
    ) -> None:
        self.slot = slot
        self._build = build
        self._autoreset = autoreset
        self._pack = pack
        self._env: Env | None = None
        self._start: Reset | None = None
        self._data = b""
        self.tick: Callable[[bool], None] = _nothing
        """Called before each turn of a replay, and with `True` before the opening that follows an ending: the time
        limit is one of single calls."""

        self.run_out: Callable[[BaseException], None] = _nothing
        """Called where the process has no memory, descriptors or threads left, which may be a neighbor's doing."""

    def perform(self, call: EnvCall, emit: Callable[[int, CallOutcome], None]) -> None:
        """Emit the outcome of a call; a second one where an episode ended and the next one is opened at once."""
        self.emit(self.answer(call), emit)

    def emit(self, outcome: CallOutcome, emit: Callable[[int, CallOutcome], None]) -> None:
        """Emit the outcome of a call, and that of the opening which follows an ending."""
        if self._autoreset and type(outcome) is Transition and (outcome.terminated or outcome.truncated):
            emit(self.slot, outcome)
            self.tick(True)
            assert self._start is not None  # a turn was played
            outcome = self.answer(self._start.next())
        emit(self.slot, outcome)

    def answer(self, call: EnvCall) -> CallOutcome:
        """The outcome of this call alone."""
        try:
            if type(call) is str:
                result: Any = self._env.step(call)  # pyright: ignore[reportOptionalMemberAccess]
                # The checks of `checked_step` for an answer of the plainest types, without a call of a function.
                if type(result) is tuple and len(result) == 5:  # pyright: ignore[reportUnknownArgumentType]
                    observation, reward, terminated, truncated, info = result  # pyright: ignore[reportUnknownVariableType]
                    if (
                        type(info) is dict  # pyright: ignore[reportUnknownArgumentType]
                        and type(observation) is str  # pyright: ignore[reportUnknownArgumentType]
                        and type(reward) is float  # pyright: ignore[reportUnknownArgumentType]
                        and type(terminated) is type(truncated) is bool  # pyright: ignore[reportUnknownArgumentType]
                        and -_INFINITY < reward < _INFINITY
                        and NOT_PLAIN.isdisjoint(info)  # pyright: ignore[reportUnknownArgumentType]
                        and self._pack is None
                    ):
                        return new_transition(Transition, (observation, reward, terminated, truncated, _own({**info})))
                outcome = checked_step(result)
            else:
                outcome = self._reset(call) if isinstance(call, Reset) else self._replay(call)  # pyright: ignore[reportArgumentType]
            if self._pack is not None:
                self._data = self._pack(self.slot, outcome)
            return outcome
        except KeyboardInterrupt:  # Ctrl-C is the caller's
            raise
        except BaseException as error:
            if _has_run_out(error):
                self.run_out(error)
            self.close()
            return failure_of(error)

    def _reset(self, start: Reset) -> ResetResult:
        self._start = start
        if self._env is None:
            self._env = self._build()
        seed = start.seed
        options = {"data_index": start.task.data_index} if self._env.takes_data_index else {}
        again = {PARTNER_REPLIES: [*start.partner_replies]} if start.partner_replies else {}
        observation, info = _checked_reset(self._env.reset(seed=seed, **options, **again))
        return observation, {**info, **options}

    def data(self, outcome: CallOutcome) -> bytes:
        """The outcome that `answer` has just given, as it was packed."""
        assert self._pack is not None
        return self._pack(self.slot, outcome) if isinstance(outcome, FailedCall) else self._data

    def _replay(self, call: Replay) -> Transition | FailedCall:
        self.close()
        env = self._env = self._build()
        observation, info = self._reset(call.start)
        shown = digest(0, observation, 0.0, info.get(IMAGES))
        ended = False
        for action in call.actions:
            self.tick(False)
            transition = checked_step(env.step(action))
            shown = digest(shown, transition.observation, transition.reward, transition.info.get(IMAGES))
            ended = ended or transition.done
        if ended or shown != call.digest:
            self.close()
            return FailedCall(
                FailureKind.DIVERGED,
                "its environment was lost, and a fresh one with the same seed and actions showed something else; an "
                "environment that draws only from self.rng can be brought back",
            )
        self.tick(False)
        return checked_step(env.step(call.action))

    def close(self) -> None:
        """Close the environment; what it raises meanwhile is ignored, but for Ctrl-C."""
        env, self._env = self._env, None
        if env is not None:
            with contextlib.suppress(GemError), convert_errors(lambda _: GemError()):
                env.close()


def _nothing(_: object) -> None:
    pass


def _has_run_out(error: BaseException) -> bool:
    """Whether an exception, or one that caused it, says so; one that cannot be asked does not."""
    with contextlib.suppress(GemError), convert_errors(lambda _: GemError(), passing=()):
        return any(map(_says_it_ran_out, _with_causes(error)))
    return False


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    for _ in range(_MAX_CAUSES):  # an exception can be its own cause
        if cause is not None:
            yield cause
            cause = cause.__cause__


def _says_it_ran_out(error: BaseException) -> bool:
    if isinstance(error, OSError):
        return error.errno in OUT_OF_ROOM
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "start new thread" in str(error))


def _own(info: Info) -> Info:
    """An info whose values the environment cannot change any more: copies replace them."""
    for key, value in info.items():
        if type(value) not in _FROZEN:
            info[key] = _copied(value)
    return info


def _copied(value: Any) -> Any:
    kind: Any = type(value)  # pyright: ignore[reportUnknownVariableType]
    try:
        if kind is dict and _FROZEN.issuperset(map(type, value.values())):
            return {**value}
        if (kind is list or kind is tuple) and _FROZEN.issuperset(map(type, value)):
            return kind(value)  # pyright: ignore[reportUnknownVariableType]
        return copy.deepcopy(value)
    except (Exception, SystemExit):  # something that cannot be copied is shown as it is
        return value


def _checked_reset(result: Any) -> ResetResult:
    try:
        observation, info = result
    except (TypeError, ValueError):
        raise InvalidAnswer(f"reset() gave {result!r:.200}, not (observation, info)") from None
    if type(observation) is not str:
        observation = _plain_text(observation, "reset")
    return observation, _checked_info(info, "reset")


def checked_step(result: Any) -> Transition:
    """The answer of an environment's step. Raises `InvalidAnswer` for what is none."""
    try:
        observation, reward, terminated, truncated, info = result
    except (TypeError, ValueError):
        raise InvalidAnswer(
            f"step() gave {result!r:.200}, not (observation, reward, terminated, truncated, info)"
        ) from None
    try:
        number = reward if type(reward) is float else _number(reward)
    except (TypeError, ValueError):
        raise InvalidAnswer(f"step() gave the reward {reward!r:.200}, which is not a number") from None
    if not math.isfinite(number):
        raise InvalidAnswer(f"step() gave the reward {number}, which is not finite")
    if type(observation) is not str:
        observation = _plain_text(observation, "step")
    if type(terminated) is not bool or type(truncated) is not bool:
        terminated, truncated = _flag(terminated), _flag(truncated)
    return new_transition(Transition, (observation, number, terminated, truncated, _checked_info(info, "step")))


def _number(value: Any) -> float:
    if isinstance(value, str | bytes):  # which float() would read
        raise TypeError
    return float(value)


def _flag(value: Any) -> bool:
    if value is None or isinstance(value, str | bytes):  # whose truth says nothing
        raise InvalidAnswer(f"step() gave {value!r:.200} as terminated or truncated, which is not a bool")
    return bool(value)


def _checked_info(info: Any, method: str) -> Info:
    if not isinstance(info, dict):
        raise InvalidAnswer(f"{method}() gave the info {info!r:.200}, which is not a dict")
    own = _own(checked_info(info, f"{method}() gave an info"))  # pyright: ignore[reportUnknownArgumentType]
    if RESERVED.isdisjoint(own):
        return own
    return {f"env_{key}" if key in RESERVED else key: value for key, value in own.items()}


def _plain_text(observation: Any, method: str) -> str:
    if not isinstance(observation, str):
        raise InvalidAnswer(f"{method}() gave the observation {observation!r:.200}, which is not a string")
    return str.__str__(observation)  # of a class of its own, such as numpy's
