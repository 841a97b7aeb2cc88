"""Episodes as compact bytes for the page.

The page opens one episode of thousands without reading the others. `BLOCK` consecutive episodes are a shard:

| part | contents |
| --- | --- |
| details | one deflate stream of JSON, a list with the texts and the numbers per turn of each episode |
| tokens | for each episode a deflate stream of its token arrays; empty where no tokens are known |

The texts of a shard share a stream because episodes repeat each other; the tokens have their own, because they are most
of the bytes and are read for one episode at a time. An episode's token arrays follow each other:

| array | of | bytes each |
| --- | --- | --- |
| places in the run's table of tokens | each token of each sequence | `width` |
| log-probabilities of the sampler | each sampled token, turn by turn | 4 |
| log-probabilities of the trainer, minus those | each sampled token of a turn that has them | 4 |
| entropies | each sampled token of a turn that has them | 4 |

Numbers are whole multiples of 1e-6 in zigzag order (0, -1, 1, -2, ...), so their error is at most 5e-7; the three largest
values stand for what is not finite. The bytes of an array are shuffled: first the lowest bytes of all its elements, and
so on. Both make the deflate stream small.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gem_viewer.columns import finite

if TYPE_CHECKING:
    from array import array

    from gem_core.episode import Episode, Turn
    from gem_core.records import RecordedEpisode, Trained

BLOCK = 50
"""Episodes of a shard."""
WIDE = 4
"""Bytes of a place in any table."""

_UNIT = 1e-6
_LARGEST = 1_000_000_000  # units, so that a difference of two fits 32 bits
_NAN, _MINUS_INFINITY, _INFINITY = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD

Codes = npt.NDArray[np.uint32]


@dataclass(frozen=True)
class Shard:
    """The bytes of `BLOCK` episodes, or of the last ones.

    Attributes:
        details: JSON of all of them, deflated.
        tokens: arrays of each, deflated.
    """

    details: bytes
    tokens: list[bytes]

    @property
    def sizes(self) -> list[int]:
        """The sizes of the details and of the tokens of each episode."""
        return [len(self.details), *map(len, self.tokens)]


class TokenTable:
    """The tokens that a run's episodes have, in order of appearance.

    Args:
        texts: returns the text by token id, as far as it is known by now.
    """

    def __init__(self, texts: Callable[[], Mapping[int, str]]) -> None:
        self._texts = texts
        self._places: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._places)

    def places(self, episode: Episode) -> list[int]:
        """The place of each token of each sequence; new tokens are appended."""
        places = self._places
        return [places.setdefault(one, len(places)) for sequence in episode.sequences for one in sequence.ids]

    def entries(self, start: int = 0) -> dict[str, list[Any]]:
        """Ids and texts (`None`: unknown) from this place on."""
        ids, texts = list(self._places)[start:], self._texts()
        return {"ids": ids, "texts": [texts.get(one) for one in ids]}


def shard(episodes: Sequence[RecordedEpisode], table: TokenTable, level: int = 6) -> Shard:
    """The bytes of these episodes.

    Args:
        episodes: at most `BLOCK`.
        table: the tokens of their run; gets those that it lacks.
        level: of compression, 1 to 9.
    """
    details: list[dict[str, Any]] = []
    tokens: list[bytes] = []
    for one in episodes:
        places = table.places(one.episode)
        width = 2 if len(table) <= 1 << 16 else WIDE
        tokens.append(_deflated(token_arrays(one, places, width), level) if places else b"")
        details.append(details_of(one, width))
    return Shard(_deflated(as_json(details), level), tokens)


def as_json(value: Any) -> bytes:
    """JSON as UTF-8. Half characters (lone surrogates) are JSON's own escapes."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")


def _deflated(data: bytes, level: int) -> bytes:
    packer = zlib.compressobj(level, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


def details_of(one: RecordedEpisode, width: int) -> dict[str, Any]:
    """The texts and the numbers per turn of an episode, as plain data.

    Args:
        one: the episode.
        width: bytes of a place in its token arrays.
    """
    episode, trained = one.episode, one.trained
    return {
        "turns": [_turn(turn) for turn in episode.turns],
        "final": episode.final_observation,
        "error": episode.error,
        "slot": episode.slot,
        "number": episode.number,
        "run": episode.run,
        "provenance": episode.provenance,
        "sequences": [len(sequence.ids) for sequence in episode.sequences],
        "width": width,
        "trained": None if trained is None else _trained(episode, trained),
    }


def _turn(turn: Turn) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "at": [turn.sequence, turn.start, turn.end],
        "observation": turn.observation,
        "response": turn.response,
        "reward": finite(turn.reward),
    }
    if turn.action != turn.response:
        fields["action"] = turn.action
    if turn.truncated:
        fields["truncated"] = True
    if turn.invalid:
        fields["invalid"] = True
    if turn.tool_call:
        fields["tool"] = "failed" if "tool_error" in turn.info else "answered"
    if turn.info:
        fields["info"] = _info(turn.info)
    return fields


def _info(info: Mapping[str, Any]) -> str:
    try:
        return json.dumps(info, ensure_ascii=False, indent=2, default=repr)
    except (TypeError, ValueError, RecursionError):  # keys that are no texts, or a value within itself
        return repr(info)


def _trained(episode: Episode, trained: Trained) -> dict[str, Any]:
    return {
        "update": trained.update,
        "advantages": [finite(one) for one in trained.advantages],
        "returns": [finite(one) for one in trained.returns],
        "logprobs": [one is not None for one in _per_turn(episode, trained.logprobs)],
        "entropies": [one is not None for one in _per_turn(episode, trained.entropies)],
    }


def _per_turn(episode: Episode, arrays: Sequence[array[float] | None]) -> list[array[float] | None]:
    """The array of each turn, where it has a number per sampled token."""
    padded = [*arrays, *[None] * (len(episode.turns) - len(arrays))]
    return [
        one if one is not None and len(one) == turn.end - turn.start else None
        for turn, one in zip(episode.turns, padded, strict=False)
    ]


def token_arrays(one: RecordedEpisode, places: Sequence[int], width: int) -> bytes:
    """The token arrays of an episode, one after the other.

    Args:
        one: an episode with tokens.
        places: its tokens in the table.
        width: bytes of a place, 2 or 4.
    """
    episode, trained = one.episode, one.trained
    sampled = [_units(episode.sequences[turn.sequence].logprobs[turn.start : turn.end]) for turn in episode.turns]
    arrays: list[npt.NDArray[Any]] = [np.array(places, f"u{width}"), _joined([_codes(own) for own in sampled])]
    if trained is not None:
        theirs = _per_turn(episode, trained.logprobs)
        differences = [
            _codes(_units(other), base) for other, base in zip(theirs, sampled, strict=True) if other is not None
        ]
        entropies = [_codes(_units(other)) for other in _per_turn(episode, trained.entropies) if other is not None]
        arrays += [_joined(differences), _joined(entropies)]
    return b"".join(_shuffled(values) for values in arrays)


def _units(numbers: array[float]) -> npt.NDArray[np.float64]:
    """In units, rounded."""
    return np.rint(np.asarray(numbers, np.float64) / _UNIT)


def _codes(units: npt.NDArray[np.float64], base: npt.NDArray[np.float64] | None = None) -> Codes:
    """Codes of numbers in units, less a base where that is finite."""
    known = np.isfinite(units)
    whole = np.clip(np.where(known, units, 0), -_LARGEST, _LARGEST).astype(np.int64)
    if base is not None:
        whole -= np.where(known & np.isfinite(base), np.clip(base, -_LARGEST, _LARGEST), 0).astype(np.int64)
    codes = ((whole << 1) ^ (whole >> 63)).astype(np.uint32)
    codes[np.isnan(units)] = _NAN
    codes[np.isneginf(units)] = _MINUS_INFINITY
    codes[np.isposinf(units)] = _INFINITY
    return codes


def _joined(codes: Sequence[Codes]) -> Codes:
    return np.concatenate(codes) if codes else np.zeros(0, np.uint32)


def _shuffled(values: npt.NDArray[Any]) -> bytes:
    """The bytes of one rank side by side."""
    little = values.astype(values.dtype.newbyteorder("<"), copy=False)
    return np.ascontiguousarray(little.view(np.uint8).reshape(len(values), values.dtype.itemsize).T).tobytes()
