"""What a worker process says to its vector: plain data, in frames, and nothing that could run code where it is read.

An environment can write to whatever its process has open. So the vector believes nothing: a frame that is too long,
that is no answer, or that nobody asked for is `Garbage`, and costs the worker.

| part of a frame | size |
| --- | --- |
| mark, length of the rest | 4 and 8 bytes |
| MessagePack: a list of answers; of each its kind, its slot and its fields | `length`, at most `2 * MOST_BYTES` |

An info holds what JSON has, and further types of Python and numpy that are only values; see `_wired`.
"""

from __future__ import annotations

import importlib
import math
import struct
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path, PurePath
from typing import Any, TypeAlias, cast
from uuid import UUID

import msgspec

from gem_core.env import RESERVED, Info
from gem_core.errors import FailureKind
from gem_core.vector.calls import (
    MOST_ERROR,
    MOST_TRACEBACK,
    Failure,
    InvalidAnswer,
    Outcome,
    Transition,
    checked_info,
    cut,
    new_transition,
)

HEADER = struct.Struct("<4sQ")
_LIST = struct.Struct(">BI")
"""The beginning of a list in MessagePack."""
MARK = b"gem2"
"""Opens every frame, so that most of what is no frame is noticed at once."""
MOST_BYTES = 32 << 20
"""Of one answer; more than any text for a model."""
MOST_DEPTH = 100
"""Levels of lists and mappings in an info."""
NOBODY = -1
"""In place of a slot: the worker itself cannot begin."""


class Garbage(Exception):
    """What came from a worker is no answer that it was asked for."""


class _Turn(msgspec.Struct, tag="turn", array_like=True, forbid_unknown_fields=True):
    slot: int
    observation: bytes
    reward: float
    terminated: bool
    truncated: bool
    info: Any


class _Opening(msgspec.Struct, tag="opening", array_like=True, forbid_unknown_fields=True):
    slot: int
    observation: bytes
    info: Any


class _Failed(msgspec.Struct, tag="failed", array_like=True, forbid_unknown_fields=True):
    slot: int
    kind: FailureKind
    error: bytes
    traceback: bytes
    place: bytes


_Message: TypeAlias = _Turn | _Opening | _Failed
Answer: TypeAlias = tuple[int, Outcome]
"""A slot, and the outcome of its call."""


# -- writing ---------------------------------------------------------------------------------------------------------


def framed(answers: Sequence[bytes]) -> bytes:
    """A frame with these packed answers, of `MOST_BYTES` and one more answer at most. Without any: it has begun."""
    data = listed(answers)
    return HEADER.pack(MARK, len(data)) + data


def listed(answers: Sequence[bytes]) -> bytes:
    """These packed answers as `unpacked` takes them."""
    return b"".join((_LIST.pack(0xDD, len(answers)), *answers))


def packed(slot: int, outcome: Outcome) -> bytes:
    """An outcome as data.

    Raises:
        InvalidAnswer: it cannot be sent: an object that is no plain value, too many levels, too many bytes.
    """
    if isinstance(outcome, Failure):
        texts = (_bytes(text) for text in (outcome.error, outcome.traceback, outcome.place))
        return _encoder.encode(_Failed(slot, outcome.kind, *texts))
    try:
        data = _encoder.encode(_message(slot, outcome, _wired_info(outcome[-1], _PLAIN)))
    except (UnicodeEncodeError, OverflowError):  # lone surrogates, or an integer of more than 64 bits
        data = _encoder.encode(_message(slot, outcome, _wired_info(outcome[-1], _PLAINEST)))
    if len(data) > MOST_BYTES:
        raise InvalidAnswer(f"its answer has {len(data):,} bytes, and {MOST_BYTES:,} is the most between processes")
    return data


_PLAINEST = frozenset({float, bool, type(None)})
_PLAIN = _PLAINEST | {str, int}
"""Types that MessagePack has: nearly all values of the last two, and all values of the others."""
_encoder = msgspec.msgpack.Encoder()


def _message(slot: int, outcome: Any, info: Any) -> _Message:
    observation = _bytes(outcome[0])
    if type(outcome) is Transition:
        return _Turn(slot, observation, outcome.reward, outcome.terminated, outcome.truncated, info)
    return _Opening(slot, observation, info)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _text(data: Any) -> str:
    return bytes(data).decode("utf-8", "surrogatepass")


def _wired_info(info: Info, plain: frozenset[type]) -> Any:
    try:
        return _wired(info, 0, plain)
    except (TypeError, ValueError) as error:
        raise InvalidAnswer(f"its info cannot be sent between processes: {type(error).__name__}: {error}") from error


def _wired(value: Any, depth: int, plain: frozenset[type]) -> Any:
    """A value as MessagePack has it. What it does not have is an extension: `_CODES`, and `_SCALARS` by their text.

    Args:
        value: whatever an environment has put there.
        depth: levels above it.
        plain: types of values that stay as they are.
    """
    if type(value) in plain:
        return value
    if isinstance(value, str):
        return _wired_text(str.__str__(value))
    if isinstance(value, int):
        number = int.__index__(value)
        fits = -(1 << 63) <= number < 1 << 63
        return number if fits else _extension(int, number.to_bytes(number.bit_length() // 8 + 1, "little", signed=True))
    if isinstance(value, float):  # a class of its own, such as numpy's
        return float.__float__(value)
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    if isinstance(value, dict | list | tuple | set | frozenset):
        if depth >= MOST_DEPTH:
            raise ValueError(f"it is nested more than {MOST_DEPTH} deep")
        return _wired_container(cast("Any", value), depth + 1, plain)
    return _wired_scalar(value)


def _wired_text(text: str) -> Any:
    try:
        text.encode()
    except UnicodeEncodeError:
        return _extension(str, _bytes(text))
    return text


def _wired_container(value: Any, depth: int, plain: frozenset[type]) -> Any:
    if isinstance(value, dict):
        mapping = dict(cast("dict[Any, Any]", value))
        if plain.issuperset(map(type, [*mapping, *mapping.values()])):
            return mapping
        pairs = [(_wired(key, depth, plain), _wired(one, depth, plain)) for key, one in mapping.items()]
        if any(isinstance(key, msgspec.msgpack.Ext) for key, _ in pairs):
            return _extension(dict, _encoder.encode(pairs))
        return dict(pairs)
    items = [*value] if plain.issuperset(map(type, value)) else [_wired(one, depth, plain) for one in value]
    if isinstance(value, list):
        return items
    kind = next(kind for kind in (tuple, set, frozenset) if isinstance(value, kind))
    return _extension(kind, _encoder.encode(items))


def _wired_scalar(value: Any) -> Any:
    for name, (kind, written, _) in _SCALARS.items():
        if isinstance(value, kind):
            return _extension(object, _encoder.encode((name, written(value))))
    if type(value).__module__ == "numpy" and hasattr(value, "dtype") and value.dtype.kind in _ARRAY_KINDS:
        array = (value.dtype.str, value.shape, value.tobytes())
        return _extension(memoryview, _encoder.encode(array)) if value.shape else _wired(value.item(), 0, _PLAIN)
    raise TypeError(f"{type(value).__module__}.{type(value).__qualname__} is no plain value; use numbers, texts, lists")


def _extension(kind: type, data: bytes) -> Any:
    return msgspec.msgpack.Ext(_CODES[kind], data)


_CODES: Mapping[type, int] = {
    kind: code for code, kind in enumerate((int, str, tuple, set, frozenset, dict, object, memoryview), 1)
}
_SCALARS: Mapping[str, tuple[type, Any, Any]] = {
    "complex": (complex, repr, complex),
    "date-time": (datetime, datetime.isoformat, datetime.fromisoformat),
    "date": (date, date.isoformat, date.fromisoformat),
    "decimal": (Decimal, str, Decimal),
    "path": (PurePath, str, Path),
    "uuid": (UUID, str, UUID),
}
_ARRAY_KINDS = "biufcSU"


# -- reading ---------------------------------------------------------------------------------------------------------


def unpacked(data: Any) -> list[Answer]:
    """The answers of a frame.

    Raises:
        Garbage: nothing that a worker says.
    """
    try:
        return [_answer(message) for message in _decoder.decode(data)]
    except Garbage:
        raise
    except Exception as error:  # a decoder's own, a RecursionError, whatever a value of the extensions raises
        # Without its text, which the environment chose: the log has each kind of failure once.
        raise Garbage(f"a frame that is none: {type(error).__name__}") from error


def frame_length(header: bytes | bytearray) -> int:
    """Bytes of the frame that follows a header.

    Raises:
        Garbage: it is no header, or announces too much.
    """
    mark, length = HEADER.unpack_from(header)
    if mark != MARK or length > 2 * MOST_BYTES:
        raise Garbage("no frame begins like this, or it is too long")
    return length


def _answer(message: _Message) -> Answer:
    if isinstance(message, _Failed):
        error, place = (cut(_text(text), MOST_ERROR) for text in (message.error, message.place))
        return message.slot, Failure(message.kind, error, cut(_text(message.traceback), MOST_TRACEBACK), place)
    observation = message.observation.decode("utf-8", "surrogatepass")
    info: Any = message.info
    if not isinstance(info, dict):
        raise Garbage("an info that is no mapping")
    info = checked_info(info)  # pyright: ignore[reportUnknownArgumentType]
    if not (RESERVED - {"task"} if isinstance(message, _Opening) else RESERVED).isdisjoint(info):
        raise Garbage("an info with what only the vector says")
    if isinstance(message, _Opening):
        return message.slot, (observation, info)
    if not math.isfinite(message.reward):
        raise Garbage("a reward that is not finite")
    fields: Any = (observation, message.reward, message.terminated, message.truncated, info)
    return message.slot, new_transition(Transition, fields)


def _unwired(code: int, data: memoryview) -> Any:
    kind = _KINDS[code]
    if kind is int:
        return int.from_bytes(data, "little", signed=True)
    if kind is str:
        return _text(data)
    value: Any = _values.decode(data)
    if kind is object:
        name, text = value
        return _SCALARS[name][2](text)
    if kind is memoryview:
        return _array(*value)
    return kind(value)


def _array(dtype: str, shape: list[int], data: bytes) -> Any:
    np: Any = importlib.import_module("numpy")  # an environment that sends arrays has it
    described = np.dtype(dtype)
    if described.kind not in _ARRAY_KINDS:
        raise Garbage("an array of objects")
    return np.frombuffer(data, described).reshape(shape).copy()


_KINDS: Mapping[int, Any] = {code: kind for kind, code in _CODES.items()}
_values = msgspec.msgpack.Decoder(ext_hook=_unwired)
_decoder = msgspec.msgpack.Decoder(list[_Message], ext_hook=_unwired)
