"""An episode as plain data, for recordings.

A record has the fields of `Episode`, and:

| field | meaning |
| --- | --- |
| `version` | of this format: 3 |
| `sequences` | of each: `ids`, all token ids; `logprobs`, of the sampled ones in order, `null` where unknown |
| `sequences` with images | `images` as well: the fields of `PlacedImage`, for each of them |
| `turns` | of each: the fields of `Turn`; `sequence`, `start` and `end` say where its response is |

An episode of a model whose tokens are unknown has no sequences; `sequence`, `start` and `end` of its turns are 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import msgspec

from gem_core.episode import Episode, Logprobs, PlacedImage, TokenSequence, Turn, as_logprobs, as_token_ids

VERSION = 3


def recorded(episode: Episode) -> dict[str, Any]:
    """The record of an episode."""
    fields = msgspec.structs.asdict(episode)
    fields["sequences"] = [
        {"ids": sequence.ids.tolist(), "logprobs": _sampled(episode, number)}
        | ({"images": sequence.images} if sequence.images else {})
        for number, sequence in enumerate(episode.sequences)
    ]
    if not episode.images:
        del fields["images"]
    return {"version": VERSION, **fields}


def restored(record: dict[str, Any]) -> Episode:
    """The episode of a record.

    Raises:
        msgspec.ValidationError: it is not the record of an episode, or one of another version.
    """
    version = record.get("version")
    if version != VERSION:
        raise msgspec.ValidationError(f"a record of version {version}, but this release reads version {VERSION}")
    try:
        episode = _read({**record})
    except (LookupError, OverflowError) as error:
        raise msgspec.ValidationError(f"a turn without its tokens, or an id that is no token: {error}") from error
    if any(not _has_tokens(episode, turn) for turn in episode.turns):
        raise msgspec.ValidationError("a turn whose response is outside of its token sequence")
    return episode


def _has_tokens(episode: Episode, turn: Turn) -> bool:
    if not episode.sequences:
        return turn.sequence == turn.start == turn.end == 0
    return turn.sequence >= 0 and 0 <= turn.start < turn.end <= len(episode.sequences[turn.sequence].ids)


def _sampled(episode: Episode, number: int) -> list[float]:
    logprobs = episode.sequences[number].logprobs
    turns = (turn for turn in episode.turns if turn.sequence == number)
    return [one for turn in turns for one in logprobs[turn.start : turn.end]]


class _Sequence(msgspec.Struct):
    ids: list[int]
    logprobs: list[float | None]
    images: list[PlacedImage] = []


def _read(record: dict[str, Any]) -> Episode:
    stored = msgspec.convert(record.pop("sequences", []), list[_Sequence])
    episode = msgspec.convert(record, Episode)
    episode.sequences = [TokenSequence.starting(as_token_ids(one.ids)) for one in stored]
    for sequence, one in zip(episode.sequences, stored, strict=True):
        sequence.images = one.images
    unread = [_logprobs(one.logprobs) for one in stored]
    for turn in episode.turns if stored else ():
        size, target = turn.end - turn.start, episode.sequences[turn.sequence]
        target.logprobs[turn.start : turn.end] = unread[turn.sequence][:size]
        unread[turn.sequence] = unread[turn.sequence][size:]
    if any(map(len, unread)) or any(len(one.ids) != len(one.logprobs) for one in episode.sequences):
        raise msgspec.ValidationError("the log-probabilities of an episode are not one for each sampled token")
    return episode


def _logprobs(numbers: Iterable[float | None]) -> Logprobs:
    return as_logprobs(math.nan if number is None else number for number in numbers)
