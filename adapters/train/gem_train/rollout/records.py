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
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, cast

import msgspec

from gem_core.episode import Episode, Logprobs, PlacedImage, TokenSequence, Turn, as_logprobs, as_token_ids

VERSION = 3

MAX_DEPTH = 100
"""Levels of a value that records have as JSON; see `gem_train.rollout.Recorder`."""


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
        said = f"a record of version {version}" if isinstance(version, int) else "a record without a version"
        raise msgspec.ValidationError(f"{said}, but this release reads version {VERSION}")
    try:
        return _read({**record})
    except OverflowError as error:
        raise msgspec.ValidationError(f"an id that is no token, or a log-probability that is none: {error}") from error


def check_episode(episode: Episode) -> None:
    """Check what types do not say of an episode that was read.

    Raises:
        msgspec.ValidationError: a turn has no tokens, or those of another one; an image is none of the episode's; or an
            info is nested more than `MAX_DEPTH` deep.
    """
    ends = [0] * len(episode.sequences)
    for turn in episode.turns:
        if not _has_tokens(episode, turn, ends):
            raise msgspec.ValidationError("a turn whose response is outside of its token sequence, or in another one")
        if ends:
            ends[turn.sequence] = turn.end
        check_depth(turn.info)
    for sequence in episode.sequences:
        if not all(_has_image(episode, sequence, image) for image in sequence.images):
            raise msgspec.ValidationError("an image that is none of the episode, or outside of its token sequence")


def check_depth(value: Any) -> None:
    """Raise `msgspec.ValidationError` if plain data is nested more than `MAX_DEPTH` deep: walking it may fail."""
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for one in level for inner in _parts(one) if isinstance(inner, dict | list)]
        if not level:
            return
    raise msgspec.ValidationError(f"a value that is nested more than {MAX_DEPTH} deep")


def _parts(value: Any) -> Iterable[Any]:
    return cast("Iterable[Any]", value.values() if isinstance(value, dict) else value)


def _has_tokens(episode: Episode, turn: Turn, ends: Sequence[int]) -> bool:
    """Whether the response of a turn is in its sequence, behind those of the turns before it."""
    if not ends:
        return turn.sequence == turn.start == turn.end == 0
    if not 0 <= turn.sequence < len(ends):
        return False
    return ends[turn.sequence] <= turn.start < turn.end <= len(episode.sequences[turn.sequence].ids)


def _has_image(episode: Episode, sequence: TokenSequence, image: PlacedImage) -> bool:
    return 0 <= image.index < len(episode.images) and 0 <= image.start <= image.end <= len(sequence.ids)


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
    check_episode(episode)
    if stored:
        _add_logprobs(episode, [one.logprobs for one in stored])
    return episode


def _add_logprobs(episode: Episode, sampled: Sequence[Sequence[float | None]]) -> None:
    counts = Counter[int]()
    for turn in episode.turns:
        counts[turn.sequence] += turn.end - turn.start
    if [counts[number] for number in range(len(sampled))] != [*map(len, sampled)]:
        raise msgspec.ValidationError("the log-probabilities of an episode are not one for each sampled token")
    unread = [*map(iter, sampled)]
    for turn in episode.turns:
        found = _logprobs(islice(unread[turn.sequence], turn.end - turn.start))
        episode.sequences[turn.sequence].logprobs[turn.start : turn.end] = found


def _logprobs(numbers: Iterable[float | None]) -> Logprobs:
    return as_logprobs(math.nan if number is None else number for number in numbers)
