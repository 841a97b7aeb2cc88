"""Plain values as MessagePack: what JSON has, and further types of Python and numpy that are only values.

Reading them runs no code that the writer chose. What MessagePack does not have is an extension; see `wired`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path, PurePath
from typing import Any, cast
from uuid import UUID

import msgspec

MAX_DEPTH = 100
"""Levels of lists and mappings in a value."""
PLAINEST = frozenset({float, bool, type(None)})
PLAIN = PLAINEST | {str, int}
"""Types that MessagePack has: nearly all values of the last two, and all values of the others."""
_encoder = msgspec.msgpack.Encoder()


def encoded(value: Any) -> bytes:
    """A value as data.

    Raises:
        TypeError: something in it is no plain value.
        ValueError: it has too many levels.
    """
    try:
        return _encoder.encode(wired(value, 0, PLAIN))
    except (UnicodeEncodeError, OverflowError):  # lone surrogates, or an integer of more than 64 bits
        return _encoder.encode(wired(value, 0, PLAINEST))


def decoded(data: Any) -> Any:
    """The value that `encoded` made data of. Raises whatever data of another kind makes the decoder raise."""
    return _values.decode(data)


def as_bytes(text: str) -> bytes:
    """A text as data, lone surrogates included."""
    return text.encode("utf-8", "surrogatepass")


def as_text(data: Any) -> str:
    """The text that `as_bytes` made data of."""
    return bytes(data).decode("utf-8", "surrogatepass")


def wired(value: Any, depth: int, plain: frozenset[type]) -> Any:
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
        if depth >= MAX_DEPTH:
            raise ValueError(f"it is nested more than {MAX_DEPTH} deep")
        return _wired_container(cast("Any", value), depth + 1, plain)
    return _wired_scalar(value)


def _wired_text(text: str) -> Any:
    try:
        text.encode()
    except UnicodeEncodeError:
        return _extension(str, as_bytes(text))
    return text


def _wired_container(value: Any, depth: int, plain: frozenset[type]) -> Any:
    if isinstance(value, dict):
        mapping = dict(cast("dict[Any, Any]", value))
        if plain.issuperset(map(type, [*mapping, *mapping.values()])):
            return mapping
        pairs = [(wired(key, depth, plain), wired(one, depth, plain)) for key, one in mapping.items()]
        if any(isinstance(key, msgspec.msgpack.Ext) for key, _ in pairs):
            return _extension(dict, _encoder.encode(pairs))
        return dict(pairs)
    items = [*value] if plain.issuperset(map(type, value)) else [wired(one, depth, plain) for one in value]
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
        return _extension(memoryview, _encoder.encode(array)) if value.shape else wired(value.item(), 0, PLAIN)
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


def unwired(code: int, data: memoryview) -> Any:
    """The value of an extension, for decoders of MessagePack."""
    kind = _KINDS[code]
    if kind is int:
        return int.from_bytes(data, "little", signed=True)
    if kind is str:
        return as_text(data)
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
        raise ValueError("an array of objects")
    return np.frombuffer(data, described).reshape(shape).copy()


_KINDS: Mapping[int, Any] = {code: kind for kind, code in _CODES.items()}
_values = msgspec.msgpack.Decoder(ext_hook=unwired)
