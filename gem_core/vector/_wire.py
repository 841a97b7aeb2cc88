"""What a worker process says to its vector: plain data, in frames, and nothing that could run code where it is read.

An environment can write to whatever its process has open. So the vector believes nothing: a frame that is too long,
that is no answer, or that nobody asked for is `Garbage`, and costs the worker.

| part of a frame | size |
| --- | --- |
| mark, length of the rest | 4 and 8 bytes |
| MessagePack: a list of answers; of each its kind, its slot and its fields | `length`, at most `2 * MAX_BYTES` |

An info holds what JSON has, and further types of Python and numpy that are only values; see `gem_core.vector.values`.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Any, TypeAlias

import msgspec

from gem_core.env import RESERVED, Info
from gem_core.errors import FailureKind
from gem_core.vector._calls import (
    MAX_ERROR_LENGTH,
    MAX_TRACEBACK_LENGTH,
    CallOutcome,
    FailedCall,
    InvalidAnswer,
    Transition,
    checked_info,
    cut,
    new_transition,
)
from gem_core.vector.values import PLAIN, PLAINEST, as_bytes, as_text, unwired, wired

HEADER = struct.Struct("<4sQ")
_LIST = struct.Struct(">BI")
"""The beginning of a list in MessagePack."""
MARK = b"gem2"
"""Opens every frame, so that most of what is no frame is noticed at once."""
MAX_BYTES = 32 << 20
"""Of one answer; more than any text for a model."""
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
Answer: TypeAlias = tuple[int, CallOutcome]
"""A slot, and the outcome of its call."""


# -- writing ---------------------------------------------------------------------------------------------------------


def framed(answers: Sequence[bytes]) -> bytes:
    """A frame with these packed answers, of `MAX_BYTES` and one more answer at most. Without any: it has begun."""
    data = listed(answers)
    return HEADER.pack(MARK, len(data)) + data


def listed(answers: Sequence[bytes]) -> bytes:
    """These packed answers as `unpacked` takes them."""
    return b"".join((_LIST.pack(0xDD, len(answers)), *answers))


def packed(slot: int, outcome: CallOutcome) -> bytes:
    """An outcome as data.

    Raises:
        InvalidAnswer: it cannot be sent: an object that is no plain value, too many levels, too many bytes.
    """
    if isinstance(outcome, FailedCall):
        texts = (as_bytes(text) for text in (outcome.error, outcome.traceback, outcome.place))
        return _encoder.encode(_Failed(slot, outcome.kind, *texts))
    try:
        data = _encoder.encode(_message(slot, outcome, _wired_info(outcome[-1], PLAIN)))
    except (UnicodeEncodeError, OverflowError):  # lone surrogates, or an integer of more than 64 bits
        data = _encoder.encode(_message(slot, outcome, _wired_info(outcome[-1], PLAINEST)))
    if len(data) > MAX_BYTES:
        raise InvalidAnswer(f"its answer has {len(data):,} bytes, and {MAX_BYTES:,} is the most between processes")
    return data


_encoder = msgspec.msgpack.Encoder()


def _message(slot: int, outcome: Any, info: Any) -> _Message:
    observation = as_bytes(outcome[0])
    if type(outcome) is Transition:
        return _Turn(slot, observation, outcome.reward, outcome.terminated, outcome.truncated, info)
    return _Opening(slot, observation, info)


def _wired_info(info: Info, plain: frozenset[type]) -> Any:
    try:
        return wired(info, 0, plain)
    except (TypeError, ValueError) as error:
        raise InvalidAnswer(f"its info cannot be sent between processes: {type(error).__name__}: {error}") from error


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
    if mark != MARK or length > 2 * MAX_BYTES:
        raise Garbage("no frame begins like this, or it is too long")
    return length


def _answer(message: _Message) -> Answer:
    if isinstance(message, _Failed):
        error, place = (cut(as_text(text), MAX_ERROR_LENGTH) for text in (message.error, message.place))
        return message.slot, FailedCall(
            message.kind, error, cut(as_text(message.traceback), MAX_TRACEBACK_LENGTH), place
        )
    observation = message.observation.decode("utf-8", "surrogatepass")
    info: Any = message.info
    if not isinstance(info, dict):
        raise Garbage("an info that is no mapping")
    info = checked_info(info)  # pyright: ignore[reportUnknownArgumentType]
    if not (RESERVED - {"data_index"} if isinstance(message, _Opening) else RESERVED).isdisjoint(info):
        raise Garbage("an info with what only the vector says")
    if isinstance(message, _Opening):
        return message.slot, (observation, info)
    if not math.isfinite(message.reward):
        raise Garbage("a reward that is not finite")
    fields: Any = (observation, message.reward, message.terminated, message.truncated, info)
    return message.slot, new_transition(Transition, fields)


_decoder = msgspec.msgpack.Decoder(list[_Message], ext_hook=unwired)
