"""What an evaluation writes down: the run, its episodes and its failures."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from gem_core.episode import Episode, StopReason, Turn
from gem_core.responses import read_response
from gem_evaluation._conversation import Count, Usage
from gem_train.rollout import recorded, restored

VERSION = 2

UNREADABLE = (msgspec.DecodeError, ValueError, LookupError, TypeError, RecursionError)
"""Errors that decoding raises for anything but these records."""


Fault = Literal["endpoint", "environment"]
"""Whose fault it is that an episode failed. What a policy does wrong is a result, not a failure."""


PolicyFault = Literal["context_full", "only_thought", "cut_off", "unusable"]
"""What a policy did at the end of an episode without success. The episode counts as what it is: finished.

| fault | meaning |
| --- | --- |
| `context_full` | the next prompt did not fit the model's context |
| `only_thought` | the last response was a thought, without a word of speech; the token limit may have cut it off |
| `cut_off` | the token limit cut off the last response |
| `unusable` | the environment could not use the last response, for example an empty one |
"""


_Tokens: TypeAlias = Annotated[int, msgspec.Meta(ge=0, lt=2**53)]


class Key(msgspec.Struct, frozen=True, order=True):
    """Which episode of an evaluation."""

    entry: str
    """The label of the environment with its settings; the id where it is played in one way only."""
    task_id: Count
    """Number of the task in this entry; an environment over data uses the row with this `data_index`."""
    repeat: Count


class Result(msgspec.Struct, frozen=True):
    """A finished episode in numbers."""

    key: Key
    success: bool
    total_reward: float
    turns: Count
    stop_reason: StopReason
    invalid: Count
    truncated: Count
    tool_calls: Count
    tool_successes: Count
    prompt_tokens: _Tokens
    completion_tokens: _Tokens
    requests: Count
    cost: float
    """Dollars."""
    seconds: float
    """From reset to end."""
    opening: Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{0,16}\Z")] = ""
    """A hash of the first prompt: messages and tools."""
    only_thought: Count = 0
    """Turns in which the model thought, and said nothing."""
    policy_fault: PolicyFault | None = None


class FailedEpisode(msgspec.Struct, frozen=True):
    """An episode that failed."""

    key: Key
    fault: Fault
    error: str
    turns: Count
    """Turns before it failed."""


class EvaluatedEpisode(msgspec.Struct, frozen=True):
    """A finished episode, whole."""

    key: Key
    episode: Episode
    usage: list[Usage]
    """Of each response; a response with several calls has several turns."""
    cost: float
    seconds: float
    opening: str

    @property
    def result(self) -> Result:
        """The episode in numbers."""
        summary = self.episode.summary()
        return Result(
            key=self.key,
            success=summary.success,
            total_reward=summary.total_reward,
            turns=summary.turns,
            stop_reason=summary.stop_reason,
            invalid=summary.invalid,
            truncated=summary.truncated,
            tool_calls=summary.tool_calls or 0,
            tool_successes=summary.tool_successes,
            prompt_tokens=sum(one.prompt_tokens for one in self.usage),
            completion_tokens=sum(one.completion_tokens for one in self.usage),
            requests=sum(one.requests for one in self.usage),
            cost=self.cost,
            seconds=self.seconds,
            opening=self.opening,
            only_thought=sum(map(is_only_thought, self.episode.turns)),
            policy_fault=_policy_fault(self.episode),
        )


def is_only_thought(turn: Turn) -> bool:
    """Whether the model thought in a turn, and said nothing."""
    thought, speech = read_response(turn.response)
    return bool(turn.reasoning or thought) and not speech.strip()


def _policy_fault(episode: Episode) -> PolicyFault | None:
    if episode.success:
        return None
    if episode.stop_reason is StopReason.CONTEXT_FULL:
        return "context_full"
    if not episode.turns:
        return None
    last = episode.turns[-1]
    if is_only_thought(last):
        return "only_thought"
    return "cut_off" if last.truncated else "unusable" if last.invalid else None


def played_record(played: EvaluatedEpisode) -> dict[str, Any]:
    """A finished episode as plain data."""
    return {
        "version": VERSION,
        "key": msgspec.to_builtins(played.key),
        "result": msgspec.to_builtins(played.result),
        "usage": msgspec.to_builtins(played.usage),
        "episode": recorded(played.episode),
    }


def read_played(record: dict[str, Any]) -> EvaluatedEpisode:
    """The episode of a record.

    Raises:
        msgspec.ValidationError: it is no such record, or one of another version.
    """
    check_version(record)
    read = msgspec.convert(record, _Played)
    return EvaluatedEpisode(
        key=read.result.key,
        episode=restored(read.episode),
        usage=read.usage,
        cost=read.result.cost,
        seconds=read.result.seconds,
        opening=read.result.opening,
    )


class _Played(msgspec.Struct):
    result: Result
    usage: list[Usage]
    episode: dict[str, Any]


def check_version(record: dict[str, Any]) -> None:
    """Raises `msgspec.ValidationError` for a record of another version."""
    if record.get("version") != VERSION:
        raise msgspec.ValidationError(
            f"a record of version {record.get('version')}, but this release reads version {VERSION}"
        )
