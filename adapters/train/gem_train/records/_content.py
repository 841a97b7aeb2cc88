"""What records contain: episodes, and what the trainer made of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Annotated, Any, TypeAlias

import msgspec
import numpy as np

from gem_core.episode import (
    Episode,
    EpisodeSummary,
    Logprobs,
    PlacedImage,
    TokenIds,
    TokenSequence,
    as_logprobs,
    as_token_ids,
)
from gem_core.turn_batch import FloatArray, IntArray
from gem_core.update import Update
from gem_train.records._columns import packed_ids, packed_numbers, unpacked_ids, unpacked_numbers
from gem_train.records._deflate import deflated, inflated
from gem_train.rollout._recorder import as_utf8, encoded
from gem_train.rollout.records import check_episode

_MAX_ERROR_LENGTH = 300
"""Characters of an error that a summary keeps. The episode has all of it."""

_RATIO = 8
"""A byte of JSON becomes up to 30 of memory."""


class RecordedSummary(msgspec.Struct, frozen=True):
    """An episode in numbers, and where it belongs."""

    summary: EpisodeSummary
    data_index: int | None
    """`Episode.data_index`."""
    split: str = ""
    """What the rollout was for: `train`, `eval`, or empty if unknown."""
    update: int | None = None
    """The first update that trained on it, counted from 1; `None` if none did."""
    version: int | None = None
    """Updates of the policy before `update`, which may count batches of several."""
    entry: str = ""
    """What it was played as: an evaluation may have several entries with the same environment. Empty: its id."""

    @property
    def id(self) -> str:
        """`Episode.id`."""
        return self.summary.id

    @property
    def staleness(self) -> int | None:
        """Updates between the oldest policy version of the episode and its first update; `None` if unknown."""
        if self.version is None or not self.summary.versions:
            return None
        return self.version - self.summary.versions[0][0]


class Trained(msgspec.Struct):
    """What one update made of an episode. `None` stands for a turn that it did not train on, or an unknown number."""

    update: int
    """Counted from 1."""
    advantages: list[float | None]
    """For each turn, as the loss used it."""
    returns: list[float | None]
    """For each turn, the return-to-go."""
    logprobs: list[Logprobs | None]
    """For each turn, the trainer's log-probability of each sampled token, to 1e-6."""
    entropies: list[Logprobs | None]
    """For each turn, the entropy at each sampled token in nats, to 1e-6."""


class RecordedEpisode(msgspec.Struct, frozen=True):
    """A recorded episode."""

    summary: RecordedSummary
    episode: Episode
    """Without texts and tokens if only summaries were recorded."""
    updates: list[Trained]
    """One for each update that trained on it, in order; a batch may serve several."""

    @property
    def trained(self) -> Trained | None:
        """What the first update made of it."""
        return self.updates[0] if self.updates else None


def summary_fields(episode: Episode) -> dict[str, Any]:
    """The summary of an episode and its row of the data, as plain data."""
    fields = msgspec.structs.asdict(episode.summary())
    texts = {name: as_utf8(value) for name, value in fields.items() if isinstance(value, str)}
    error = None if episode.error is None else as_utf8(episode.error[-_MAX_ERROR_LENGTH:])
    return {**fields, **texts, "error": error, "data_index": episode.data_index}


def summary_of(episode: Episode, split: str, entry: str) -> RecordedSummary:
    """The summary of an episode that was read whole."""
    return RecordedSummary(
        msgspec.convert(summary_fields(episode), EpisodeSummary), episode.data_index, split, entry=entry
    )


def packed_episode(episode: Episode, *, full: bool) -> bytes:
    """An episode as bytes.

    Args:
        episode: a finished episode.
        full: with texts, infos and tokens; otherwise only rewards, and how the episode ended.
    """
    kept = episode if full else _without_contents(episode)
    fields: dict[str, Any] = {**msgspec.structs.asdict(kept), "sequences": []}
    ids = [np.asarray(sequence.ids, dtype=np.int32) for sequence in kept.sequences]
    columns: dict[str, Any] = {
        "episode": deflated(encoded(fields, kept), _RATIO),
        "lengths": [len(one) for one in ids],
        "ids": packed_ids(np.concatenate(ids), repetitive=len(ids) > 1) if ids else b"",
        "logprobs": packed_numbers(_sampled_logprobs(kept)) if ids else b"",
    }
    if any(sequence.images for sequence in kept.sequences):
        columns["images"] = [sequence.images for sequence in kept.sequences]
    return msgspec.msgpack.encode(columns)


def unpacked_episode(packed: bytes, turns: int) -> Episode:
    """The episode of `packed_episode`.

    Args:
        packed: the bytes.
        turns: how many its summary has.

    Raises:
        msgspec.DecodeError, ValueError, RecursionError, zlib.error: the bytes are no such episode.
    """
    columns = msgspec.msgpack.decode(packed, type=_EpisodeColumns)
    episode = msgspec.json.decode(inflated(columns.episode, _RATIO), type=Episode)
    if len(episode.turns) != turns or len(columns.lengths) > 2 * turns + 2:
        raise ValueError(f"it does not have the {turns} turns of its summary")
    if columns.lengths:
        _add_sequences(episode, columns)
    check_episode(episode)
    if columns.lengths:
        _add_logprobs(episode, columns.logprobs)
    return episode


def _add_sequences(episode: Episode, columns: _EpisodeColumns) -> None:
    ends = [*accumulate(columns.lengths)]
    ids = np.split(unpacked_ids(columns.ids, ends[-1]), ends[:-1])
    episode.sequences = [TokenSequence.starting(_token_ids(one)) for one in ids]
    for sequence, images in zip(episode.sequences, columns.images, strict=False):
        sequence.images = images


def _add_logprobs(episode: Episode, packed: bytes) -> None:
    ends = [*accumulate((turn.end - turn.start for turn in episode.turns), initial=0)]
    numbers = unpacked_numbers(packed, ends[-1])
    for turn, (first, last) in zip(episode.turns, pairwise(ends), strict=True):
        episode.sequences[turn.sequence].logprobs[turn.start : turn.end] = _floats(numbers[first:last])


def packed_training(update: Update, turns: IntArray, *, full: bool) -> bytes:
    """The training on one episode as bytes.

    Args:
        update: the update.
        turns: (K,), the indices of the episode's turns in it.
        full: with numbers per token.
    """
    columns = {
        "position": update.position[turns].tolist(),
        "advantage": update.advantage[turns].tolist(),
        "return": update.return_to_go[turns].tolist(),
        "logprobs": _token_column(update.logprobs, turns) if full else None,
        "entropies": _token_column(update.entropies, turns) if full else None,
    }
    return msgspec.msgpack.encode(columns)


def add_training(trained: Trained, packed: bytes) -> int:
    """Add what one process trained on. Returns how many numbers per token there were.

    Args:
        trained: with an entry for each turn of the episode.
        packed: from `packed_training`.

    Raises:
        msgspec.DecodeError, ValueError, IndexError, zlib.error: the bytes are no training on this episode. Nothing was
            added.
    """
    columns = msgspec.msgpack.decode(packed, type=_TrainingColumns)
    places, turns = columns.position, len(trained.advantages)
    tokens = [_by_turn(one, len(places)) for one in (columns.logprobs, columns.entropies)]
    rows = [*zip(places, columns.advantage, columns.returns, *tokens, strict=True)]
    if not all(0 <= place < turns for place in places):
        raise IndexError(f"a turn that an episode of {turns} turns does not have")
    kept = trained.advantages, trained.returns, trained.logprobs, trained.entropies
    for place, *values in rows:
        for entries, value in zip(kept, values, strict=True):
            entries[place] = value
    return sum(sum(one.sizes) for one in (columns.logprobs, columns.entropies) if one)


def untrained(update: int, turns: int) -> Trained:
    """An update of an episode of this many turns, with nothing known yet."""
    nothing: list[Any] = [None] * turns
    return Trained(update, nothing, nothing.copy(), nothing.copy(), nothing.copy())


_Size: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]


class _EpisodeColumns(msgspec.Struct):
    episode: bytes
    lengths: list[_Size]
    ids: bytes
    logprobs: bytes
    images: list[list[PlacedImage]] = []


class _TokenColumn(msgspec.Struct):
    sizes: list[_Size]
    numbers: bytes


class _TrainingColumns(msgspec.Struct):
    position: list[int]
    advantage: list[float]
    returns: list[float] = msgspec.field(name="return")
    logprobs: _TokenColumn | None
    entropies: _TokenColumn | None


def _without_contents(episode: Episode) -> Episode:
    nothing = {"sequence": 0, "start": 0, "end": 0, "observation": "", "response": "", "action": "", "reasoning": ""}
    turns = [msgspec.structs.replace(turn, **nothing, info=_flags(turn.info), versions=[]) for turn in episode.turns]
    return msgspec.structs.replace(episode, turns=turns, sequences=[], images=[], final_observation="")


def _flags(info: dict[str, Any]) -> dict[str, Any]:
    """The part of an info that the properties of a turn read."""
    return {name: bool(info[name]) for name in ("invalid_action", "use_tool") if name in info}


def _sampled_logprobs(episode: Episode) -> FloatArray:
    """Log-probabilities of all sampled tokens, turn by turn."""
    parts = [episode.sequences[turn.sequence].logprobs[turn.start : turn.end] for turn in episode.turns]
    return np.concatenate([np.zeros(0), *(np.asarray(part, dtype=np.float64) for part in parts)])


def _token_ids(numbers: Any) -> TokenIds:
    ids = as_token_ids()
    ids.frombytes(numbers.astype(np.int32).tobytes())
    return ids


def _floats(numbers: Any) -> Logprobs:
    floats = as_logprobs()
    floats.frombytes(numbers.astype(np.float32).tobytes())
    return floats


def _known(numbers: Any) -> Logprobs | None:
    return None if np.isnan(numbers).all() else _floats(numbers)


def _token_column(tokens: Sequence[Any] | None, turns: IntArray) -> dict[str, Any] | None:
    if tokens is None:
        return None
    own = [np.asarray(tokens[turn], dtype=np.float64) for turn in turns.tolist()]
    return {"sizes": [len(one) for one in own], "numbers": packed_numbers(np.concatenate([np.zeros(0), *own]))}


def _by_turn(column: _TokenColumn | None, turns: int) -> Sequence[Logprobs | None]:
    if column is None:
        return [None] * turns
    ends = [*accumulate(column.sizes, initial=0)]
    numbers = unpacked_numbers(column.numbers, ends[-1])
    return [_known(numbers[first:last]) for first, last in pairwise(ends)]
