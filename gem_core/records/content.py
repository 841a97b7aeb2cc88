"""What a record says of an episode, and of the training on it."""

from __future__ import annotations

import zlib
from typing import Any

import msgspec
import numpy as np

from gem_core.episode import (
    Episode,
    EpisodeSummary,
    Logprobs,
    TokenIds,
    TokenSequence,
    as_logprobs,
    as_token_ids,
)
from gem_core.records.columns import packed_ids, packed_numbers, unpacked_ids, unpacked_numbers
from gem_core.rollout.recorder import as_utf8, encoded
from gem_core.update import FloatArray, Update

_LONGEST_ERROR = 300
"""Characters of an error that a summary keeps; the episode has all of it."""


class RecordedSummary(msgspec.Struct, frozen=True):
    """An episode in numbers, and where it belongs."""

    id: str
    """`Episode.id`."""
    summary: EpisodeSummary
    task: int | None
    """The row of the data set, for environments that take one."""
    split: str = ""
    """What the rollout was for: `train`, `eval`, or empty if unknown."""
    update: int | None = None
    """The update that trained on it, counted from 1; `None` if none did."""


class Trained(msgspec.Struct, frozen=True):
    """What the trainer made of an episode."""

    update: int
    """Counted from 1."""
    advantages: list[float | None]
    """For each turn, as the loss used it; `None` for a turn that was not trained on."""
    returns: list[float | None]
    """For each turn, the return-to-go."""
    logprobs: list[Logprobs | None]
    """For each turn, the trainer's log-probability of each sampled token, to 1e-6; `None` where unknown."""
    entropies: list[Logprobs | None]
    """For each turn, the entropy at each sampled token in nats, to 1e-6; `None` where unknown."""


class RecordedEpisode(msgspec.Struct, frozen=True):
    """An episode as it was recorded."""

    summary: RecordedSummary
    episode: Episode
    """Without texts and tokens where only summaries were recorded."""
    trained: Trained | None


def summary_fields(episode: Episode) -> dict[str, Any]:
    """The numbers of an episode as plain data, for `summary_of`."""
    summary = episode.summary()
    error = None if summary.error is None else as_utf8(summary.error[-_LONGEST_ERROR:])
    small = msgspec.structs.replace(summary, error=error, env_id=as_utf8(summary.env_id))
    return {"id": episode.id, "task": episode.task, **msgspec.to_builtins(small)}


def summary_of(fields: dict[str, Any], split: str, update: int | None) -> RecordedSummary:
    """The summary of plain data.

    Raises:
        msgspec.ValidationError: a field is missing or of another type.
    """
    return RecordedSummary(fields["id"], msgspec.convert(fields, EpisodeSummary), fields["task"], split, update)


def packed_episode(episode: Episode, *, whole: bool) -> bytes:
    """An episode as bytes.

    Args:
        episode: a finished episode.
        whole: with texts, infos and tokens; otherwise only rewards, and how the episode ended.
    """
    kept = episode if whole else _bare(episode)
    fields: dict[str, Any] = {**msgspec.structs.asdict(kept), "sequences": []}
    sampled = [_sampled(kept, number) for number in range(len(kept.sequences))]
    columns = {
        "episode": zlib.compress(encoded(fields, kept)),
        "ids": [packed_ids(sequence.ids) for sequence in kept.sequences],
        "logprobs": [packed_numbers(numbers) for numbers in sampled],
    }
    return msgspec.msgpack.encode(columns)


def unpacked_episode(packed: bytes) -> Episode:
    """The episode of `packed_episode`.

    Raises:
        msgspec.DecodeError, ValueError, zlib.error: the bytes are no episode.
    """
    columns = msgspec.msgpack.decode(packed, type=_Columns)
    episode = msgspec.json.decode(zlib.decompress(columns.episode), type=Episode)
    episode.sequences = [TokenSequence.starting(_token_ids(ids)) for ids in columns.ids]
    unread = [unpacked_numbers(numbers) for numbers in columns.logprobs]
    for turn in episode.turns if unread else ():
        size, numbers = turn.end - turn.start, unread[turn.sequence]
        episode.sequences[turn.sequence].logprobs[turn.start : turn.end] = _floats(numbers[:size])
        unread[turn.sequence] = numbers[size:]
    return episode


def packed_training(update: Update, turns: Any, *, whole: bool) -> bytes:
    """The training on one episode as bytes.

    Args:
        update: the update.
        turns: the indices of the episode's turns in it.
        whole: with numbers per token.
    """
    columns = {
        "position": update.position[turns].tolist(),
        "advantage": update.advantage[turns].tolist(),
        "return": update.return_to_go[turns].tolist(),
        "logprobs": _per_token(update.logprobs, turns) if whole else None,
        "entropies": _per_token(update.entropies, turns) if whole else None,
    }
    return msgspec.msgpack.encode(columns)


def unpacked_training(packed: bytes, update: int, turns: int) -> Trained:
    """The training on an episode of this many turns.

    Raises:
        msgspec.DecodeError, ValueError, zlib.error: the bytes are no such record.
    """
    columns = msgspec.msgpack.decode(packed, type=_TrainingColumns)
    if columns.position and not 0 <= min(columns.position) <= max(columns.position) < turns:
        raise ValueError(f"the training on an episode of {turns} turns has turn {max(columns.position)}")
    return Trained(
        update=update,
        advantages=_placed(columns.advantage, columns.position, turns),
        returns=_placed(columns.returns, columns.position, turns),
        logprobs=_placed(_per_turn(columns.logprobs, columns.position), columns.position, turns),
        entropies=_placed(_per_turn(columns.entropies, columns.position), columns.position, turns),
    )


class _Columns(msgspec.Struct):
    episode: bytes
    ids: list[bytes]
    logprobs: list[bytes]


class _TokenColumn(msgspec.Struct):
    sizes: list[int]
    numbers: bytes


class _TrainingColumns(msgspec.Struct):
    position: list[int]
    advantage: list[float]
    returns: list[float] = msgspec.field(name="return")
    logprobs: _TokenColumn | None
    entropies: _TokenColumn | None


def _bare(episode: Episode) -> Episode:
    turns = [
        msgspec.structs.replace(
            turn, sequence=0, start=0, end=0, observation="", response="", action="", info=_flags(turn.info)
        )
        for turn in episode.turns
    ]
    return msgspec.structs.replace(episode, turns=turns, sequences=[], final_observation="")


def _flags(info: dict[str, Any]) -> dict[str, Any]:
    """What an info says to the properties of a turn."""
    return {name: bool(info[name]) for name in ("invalid_action", "use_tool") if name in info}


def _sampled(episode: Episode, number: int) -> FloatArray:
    logprobs = episode.sequences[number].logprobs
    parts = [logprobs[turn.start : turn.end] for turn in episode.turns if turn.sequence == number]
    return np.concatenate([np.asarray(part, dtype=np.float64) for part in parts] or [np.zeros(0)])


def _token_ids(packed: bytes) -> TokenIds:
    ids = as_token_ids()
    ids.frombytes(unpacked_ids(packed).astype(np.int32).tobytes())
    return ids


def _floats(numbers: np.ndarray[Any, Any]) -> Logprobs:
    floats = as_logprobs()
    floats.frombytes(numbers.astype(np.float32).tobytes())
    return floats


def _per_token(tokens: Any, turns: Any) -> dict[str, Any] | None:
    if tokens is None:
        return None
    own = [np.asarray(tokens[turn], dtype=np.float64) for turn in turns]
    return {"sizes": [len(one) for one in own], "numbers": packed_numbers(np.concatenate(own or [np.zeros(0)]))}


def _per_turn(column: _TokenColumn | None, positions: list[int]) -> list[Any]:
    if column is None:
        return [None] * len(positions)
    ends = np.cumsum(column.sizes)
    return [_floats(part) for part in np.split(unpacked_numbers(column.numbers), ends[:-1])]


def _placed(values: list[Any], positions: list[int], turns: int) -> list[Any]:
    placed: list[Any] = [None] * turns
    for position, value in zip(positions, values, strict=True):
        placed[position] = value
    return placed
