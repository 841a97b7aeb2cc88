"""Episodes as compact bytes for the page.

The page opens one episode of thousands without reading the others. `BLOCK` consecutive episodes are a shard of parts,
each its own deflate stream:

| part | contents |
| --- | --- |
| 0 | details: JSON, a list with the texts and the numbers per turn of each episode |
| 1 | tokens: the place in the run's table of tokens of each token of each sequence of each episode |
| 2 and on | numbers: of one episode each; empty where no tokens are known |

Episodes repeat each other, so their texts share a stream; numbers are most of the bytes, and are read for one episode
at a time. A text that the tokens have is not stored again. `[start, end]` instead of an observation is a slice of the
texts of the tokens between the last response and this one, and instead of a response a slice of those that were
sampled, in UTF-16 units as JavaScript counts. `thought` is the number of units at the start of a response that are a
thought; if thought and speech do not follow each other in this way, `said` has both. `reasoning` is a thought that is
no part of the response.

The numbers of an episode are arrays of 4 bytes each, which follow each other: the sampler's log-probability of each
sampled token, turn by turn; then, for each update that trained on it, the trainer's, minus those, in turns that have
them, and the entropies, in turns that have them. They are whole multiples of 1e-6 in zigzag order (0, -1, 1, -2, ...),
so their error is at most 5e-7. The three largest values stand for what is not finite. The bytes of each array, and of
the tokens, are shuffled: first the lowest bytes of all elements, and so on. Both make the streams small.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gem_core.responses import read_response
from gem_train.records import token_pieces
from gem_viewer._columns import finite

if TYPE_CHECKING:
    from array import array

    from gem_core.episode import Episode, Turn
    from gem_train.records import RecordedEpisode, TokenText, Trained

BLOCK = 50
"""Episodes of a shard."""

_SPARE_TEXT = 100_000
"""Characters of tokens in which a text may be looked for, beside 8 for each of its own."""

_INDENTED = json.JSONEncoder(ensure_ascii=False, indent=2, default=repr)
_UNIT = 1e-6
_LARGEST = 1_000_000_000  # units, so that a difference of two fits 32 bits
_NAN, _MINUS_INFINITY, _INFINITY = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD

Codes = npt.NDArray[np.uint32]


class Unreadable(NamedTuple):
    """In the place of an episode that is damaged."""

    reason: str


class TokenTable:
    """The tokens that a run's episodes have, in order of appearance.

    Args:
        texts: text or bytes by token id; a token without text is shown as its id.
    """

    def __init__(self, texts: Mapping[int, TokenText]) -> None:
        self.texts = texts
        self._places: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._places)

    def places(self, ids: Iterable[int]) -> list[int]:
        """The place of each of these tokens; new ones are appended."""
        places = self._places
        return [places.setdefault(one, len(places)) for one in ids]

    def text(self, ids: Iterable[int], part: str) -> str | None:
        """The texts of these tokens, joined; `None` where one is unknown, or where they are much more than a part.

        Args:
            ids: of tokens.
            part: what is looked for in their texts.
        """
        try:
            texts = [self.texts[one] for one in ids]
        except KeyError:
            return None
        # One long text in a file, repeated by an id of a byte each, would fill the memory.
        return None if sum(map(len, texts)) > _SPARE_TEXT + 8 * len(part) else "".join(token_pieces(texts))

    def entries(self, start: int = 0) -> dict[str, list[Any]]:
        """Ids and texts (`None`: unknown; numbers: bytes of a part of a character) from this place on."""
        ids = list(self._places)[start:]
        texts = [self.texts.get(one) for one in ids]
        return {"ids": ids, "texts": [[*one] if isinstance(one, bytes) else one for one in texts]}


def shard(episodes: Iterable[RecordedEpisode | Unreadable], table: TokenTable, level: int = 6) -> list[bytes]:
    """The parts of a shard.

    Args:
        episodes: at most `BLOCK`. Only one of them has to be in memory at a time.
        table: the tokens of their run; gets those that it lacks.
        level: of compression, 1 to 9.
    """
    details: list[bytes] = []
    places: list[Codes] = []
    numbers: list[bytes] = []
    for one in episodes:
        details.append(as_json(_details(one, table)))
        numbers.append(_packed_numbers(one, level))
        if not isinstance(one, Unreadable):
            places += [np.array(table.places(sequence.ids), np.uint32) for sequence in one.episode.sequences]
    width = 2 if len(table) <= 1 << 16 else 4
    all_details = b'{"width":%d,"episodes":[%s]}' % (width, b",".join(details))
    tokens = _shuffled(_joined(places).astype(f"u{width}"))
    return [_deflated(all_details, level), _deflated(tokens, level), *numbers]


def as_json(value: Any) -> bytes:
    """JSON as UTF-8. Half characters (lone surrogates) are JSON's own escapes."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")


def _deflated(data: bytes, level: int) -> bytes:
    packer = zlib.compressobj(level, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush()


def _packed_numbers(one: RecordedEpisode | Unreadable, level: int) -> bytes:
    return b"" if isinstance(one, Unreadable) or not one.episode.sequences else _deflated(_numbers(one), level)


def _details(one: RecordedEpisode | Unreadable, table: TokenTable) -> dict[str, Any]:
    if isinstance(one, Unreadable):
        lists: dict[str, Any] = {"turns": [], "sequences": [], "updates": [], "images": []}
        nothing = {"final": "", "error": None, "provenance": ""}
        return {**lists, **nothing, "unreadable": one.reason}
    episode = one.episode
    return {
        "turns": _turns(episode, table),
        "images": [[one.turn, one.uri] for one in episode.images],
        "final": episode.final_observation,
        "error": episode.error,
        "provenance": episode.provenance,
        "sequences": [len(sequence.ids) for sequence in episode.sequences],
        "updates": [_trained(episode, trained) for trained in one.updates],
    }


def _turns(episode: Episode, table: TokenTable) -> list[dict[str, Any]]:
    ends = [0] * len(episode.sequences)
    turns: list[dict[str, Any]] = []
    for turn in episode.turns:
        fields = _turn(turn)
        if episode.sequences:
            ids = episode.sequences[turn.sequence].ids
            fields["observation"] = _slice(turn.observation, ids[ends[turn.sequence] : turn.start], table)
            fields["response"] = _slice(turn.response, ids[turn.start : turn.end], table)
            ends[turn.sequence] = turn.end
        turns.append(fields)
    return turns


def _slice(text: str, ids: Iterable[int], table: TokenTable) -> str | list[int]:
    """Where the text is in that of tokens, which the page has, in UTF-16 units; otherwise the text."""
    whole = table.text(ids, text)
    start = -1 if whole is None or not text else whole.find(text)
    if whole is None or start < 0:
        return text
    begin = _utf16_units(whole[:start])
    return [begin, begin + _utf16_units(text)]


def _utf16_units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _turn(turn: Turn) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "at": [turn.sequence, turn.start, turn.end],
        "observation": turn.observation,
        "response": turn.response,
        "reward": finite(turn.reward),
    }
    thought, speech = read_response(turn.response)
    if speech != turn.response and turn.response.endswith(speech):
        fields["thought"] = _utf16_units(turn.response[: len(turn.response) - len(speech)])
    elif speech != turn.response:
        fields["said"] = [thought, speech]
    if turn.reasoning:
        fields["reasoning"] = turn.reasoning
    if turn.action != speech:
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
        plain, lines = json.dumps(info, ensure_ascii=False, default=repr), list[str]()
        room = 8 * len(plain)
        for part in _INDENTED.iterencode(info):
            lines.append(part)
            room -= len(part)
            if room < 0:  # many empty lists, many levels deep
                return plain
    except (TypeError, ValueError, RecursionError):  # keys that are no texts, or a value within itself
        return repr(info)
    return "".join(lines)


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


def _numbers(one: RecordedEpisode) -> bytes:
    episode = one.episode
    sampled = [_units(episode.sequences[turn.sequence].logprobs[turn.start : turn.end]) for turn in episode.turns]
    arrays = [_joined([_codes(own) for own in sampled])]
    for trained in one.updates:
        theirs = _per_turn(episode, trained.logprobs)
        pairs = zip(theirs, sampled, strict=True)
        arrays.append(_joined([_codes(_units(other), base) for other, base in pairs if other is not None]))
        entropies = _per_turn(episode, trained.entropies)
        arrays.append(_joined([_codes(_units(own)) for own in entropies if own is not None]))
    return b"".join(map(_shuffled, arrays))


def _units(numbers: array[float]) -> npt.NDArray[np.float64]:
    """In units, rounded."""
    return np.rint(np.asarray(numbers, np.float64) / _UNIT)


def _codes(units: npt.NDArray[np.float64], base: npt.NDArray[np.float64] | None = None) -> Codes:
    """Codes of numbers in units, less a base where that is finite."""
    whole = _whole(units)
    if base is not None:
        whole -= np.where(np.isfinite(units), _whole(base), 0)
    codes = ((whole << 1) ^ (whole >> 63)).astype(np.uint32)
    codes[np.isnan(units)] = _NAN
    codes[np.isneginf(units)] = _MINUS_INFINITY
    codes[np.isposinf(units)] = _INFINITY
    return codes


def _whole(units: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Whole units, 0 for what is not finite."""
    bounded = np.minimum(np.maximum(np.where(np.isfinite(units), units, 0), -_LARGEST), _LARGEST)
    return bounded.astype(np.int64)


def _joined(codes: Sequence[Codes]) -> Codes:
    return np.concatenate(codes) if codes else np.zeros(0, np.uint32)


def _shuffled(values: npt.NDArray[Any]) -> bytes:
    """The bytes of one rank side by side."""
    size = values.dtype.itemsize
    little = values.astype(f"<u{size}", copy=False)
    rows: npt.NDArray[np.uint8] = np.ndarray((len(values), size), np.uint8, little.tobytes())
    return np.transpose(rows).tobytes()
