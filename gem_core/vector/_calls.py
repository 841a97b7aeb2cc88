"""What a vector and its environments say to each other, in one process or between several."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

from gem_core.env import RESERVED, Info, ResetResult
from gem_core.errors import EnvError, FailureKind, GemError, convert_errors, described
from gem_core.image import IMAGES, as_uris
from gem_core.partner import PARTNER_REPLIES
from gem_core.seeding import derive_seed
from gem_core.vector._tasks import Task


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


# What a NamedTuple's own constructor calls, at a third of its cost: `new_transition(Transition, five_values)`.
new_transition: Any = tuple.__new__  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]


class FailedCall(NamedTuple):
    """A call that an environment did not answer as it should."""

    kind: FailureKind
    error: str
    """What happened, in one line; of an exception its type and text."""
    traceback: str = ""
    """For the log; empty where nothing was raised, as after a timeout."""
    place: str = ""
    """Where it was raised, so that the log can tell failures apart."""


CallOutcome: TypeAlias = ResetResult | Transition | FailedCall


class Reset(NamedTuple):
    """Start an episode; answered with observation and info."""

    run_seed: int
    task: Task
    episode: int
    """Number of the episode in its slot, from 0."""
    stride: tuple[int, int]
    """How far `task_id` and `data_index` of the next episode's task are from those of this task."""
    given_seed: int | None = None
    """A seed for this episode alone, in place of the one that the run derives."""
    partner_replies: tuple[str, ...] = ()
    """What a partner answered when this episode was played before; see `gem_core.partner`."""

    @property
    def seed(self) -> int:
        """The seed that the environment is given."""
        return derive_seed(self.run_seed, self.task.task_id) if self.given_seed is None else self.given_seed

    def next(self) -> Reset:
        """The start of the episode after this one."""
        task, (tasks, own) = self.task, self.stride
        return Reset(
            self.run_seed, Task(task.task_id + tasks, task.env_id, task.data_index + own), self.episode + 1, self.stride
        )


class Replay(NamedTuple):
    """Bring a fresh environment to where a lost one stood, then play a turn.

    Where the vector resets in the same step, the opening of the next episode follows an ending, as after any turn.
    """

    start: Reset
    actions: tuple[str, ...]
    digest: int
    """Of what the lost one had shown; a replay that shows something else has failed."""
    action: str


EnvCall: TypeAlias = str | Reset | Replay
"""A text is an action, and plays a turn."""


_REWARD = struct.Struct("<d")


def digest(previous: int, observation: str, reward: float, images: Sequence[str] | None = None) -> int:
    """A checksum over everything an episode has shown, images included, one turn at a time."""
    for uri in images or ():
        previous = zlib.crc32(uri.encode(), previous)
    return zlib.crc32(_REWARD.pack(reward), zlib.crc32(observation.encode("utf-8", "surrogatepass"), previous))


class InvalidAnswer(Exception):
    """An environment returned something that it must not."""


def checked_info(info: Mapping[Any, Any], names: str = "an info") -> Info:
    """A copy of an info, in which those entries that rollouts read are of the types that they expect.

    Args:
        info: from an environment.
        names: what to call it in an error.

    Raises:
        InvalidAnswer: an entry cannot be of that type.
    """
    if _READ.keys().isdisjoint(info):
        return dict(info)
    return {key: _READ[key](value, f"{names} with {key!r}") if key in _READ else value for key, value in info.items()}


def _truth(value: Any, what: str) -> bool:
    if type(value) is bool:
        return value
    try:
        return bool(value)
    except Exception as error:  # an array, for example
        raise InvalidAnswer(f"{what} that is neither true nor false: {type(error).__name__}") from None


def _words(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise InvalidAnswer(f"{what} of the type {type(value).__name__}, which is not a string")
    return str.__str__(value)


def _by_agent(kind: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    def read(value: Any, what: str) -> Any:
        if not isinstance(value, Mapping):
            raise InvalidAnswer(f"{what} of the type {type(value).__name__}, which is not a dict")
        entries = cast("Mapping[Any, Any]", value)
        return {_words(agent, what): kind(one, what) for agent, one in entries.items()}

    return read


def _finite(value: Any, what: str) -> float:
    if not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidAnswer(f"{what} that has {value!r:.200}, which is not a finite number")
    return float(value)


def _end(value: Any, what: str) -> str:
    if value not in ("terminated", "truncated"):
        raise InvalidAnswer(f"{what} that has {value!r:.200}, which is neither 'terminated' nor 'truncated'")
    return value


def _info(value: Any, what: str) -> Info:
    if not isinstance(value, dict):
        raise InvalidAnswer(f"{what} that has {value!r:.200}, which is not a dict")
    return checked_info(cast("Info", value), what)


def _texts(value: Any, what: str) -> list[str]:
    if not isinstance(value, list):
        raise InvalidAnswer(f"{what} of the type {type(value).__name__}, which is not a list")
    return [_words(one, what) for one in cast("list[Any]", value)]


def _uris(value: Any, what: str) -> list[str]:
    try:
        return as_uris(value)
    except EnvError as error:
        raise InvalidAnswer(f"{what} that no model can be shown: {error}") from error


_READ: Mapping[str, Callable[[Any, str], Any]] = {
    "success": _truth,
    "use_tool": _truth,
    "prefix": _words,
    "suffix": _words,
    "agent": _words,
    "agent_rewards": _by_agent(_finite),
    "agent_infos": _by_agent(_info),
    "agent_ends": _by_agent(_end),
    "agent_forfeits": _by_agent(_by_agent(_finite)),
    "agent_seen": _by_agent(_words),
    PARTNER_REPLIES: _texts,
    IMAGES: _uris,
}
NOT_PLAIN = RESERVED | _READ.keys()
"""Keys of an info that have to be looked at."""

MAX_ERROR_LENGTH, MAX_TRACEBACK_LENGTH = 2_000, 20_000
"""Characters of a failure's texts, which an environment chooses, and which go to logs and recordings."""


def failure_of(error: BaseException) -> FailedCall:
    """The failure that an exception makes, whatever its own methods do."""
    try:
        with convert_errors(lambda _: GemError(), passing=()):
            return _failure_of(error)
    except GemError:
        return FailedCall(FailureKind.RAISED, "an exception that cannot be described", place="an exception")


def _failure_of(error: BaseException) -> FailedCall:
    import traceback  # only failures need it

    cause = error if error.__cause__ is None else error.__cause__
    place = traceback.extract_tb(cause.__traceback__)[-1:]
    where = ":".join([type(cause).__name__, *(f"{frame.filename}:{frame.lineno}" for frame in place)])
    text = cut("".join(traceback.format_exception(type(error), error, error.__traceback__)), MAX_TRACEBACK_LENGTH)
    kind, said = FailureKind.RAISED, described(error)
    if isinstance(error, InvalidAnswer):
        kind, said = FailureKind.INVALID, str(error)
    return FailedCall(kind, cut(said, MAX_ERROR_LENGTH), text, cut(where, MAX_ERROR_LENGTH))


def cut(text: str, most: int) -> str:
    """A text without its middle, if it is longer than that."""
    half = most // 2 - 4
    return text if len(text) <= most else f"{text[:half]} [...] {text[-half:]}"


def merged(ended: Transition, opening: ResetResult) -> Transition:
    """The last transition of one episode with the opening of the next, as same-step autoreset shows them."""
    observation, info = opening
    final: dict[str, Any] = {"final_observation": ended.observation, "final_info": ended.info}
    return Transition(observation, ended.reward, ended.terminated, ended.truncated, {**info, **final})
