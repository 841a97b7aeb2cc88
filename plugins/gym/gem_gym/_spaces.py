"""Gymnasium's spaces in text: described in words, and their values as JSON.

| space | JSON |
| --- | --- |
| Discrete | a whole number |
| MultiDiscrete, MultiBinary, Box | lists of numbers, one level per dimension; a number if there is none |
| Text | a string |
| Tuple | a list with one item per space |
| Dict | an object with one key per space |
"""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias, cast

import numpy as np

from gem_core.errors import EnvError

spaces: Any = importlib.import_module("gymnasium.spaces")  # untyped, and missing where types are checked

MAX_NUMBERS = 1024
"""Numbers in a value; a space with more is an image or the like, and takes a codec of its own."""
MAX_BOUNDS = 16
"""Numbers whose bounds are listed one by one; of more, the lowest and the highest bound."""
DIGITS = 4
"""Significant digits of a fraction that is shown."""

Plain: TypeAlias = Any
"""What `json.loads` gives: numbers, strings, lists and dicts."""


class NotInSpaceError(ValueError):
    """A value is not in a space."""


def check(space: Any, what: str) -> None:
    """Check that values of the space can be read and written as text.

    Args:
        space: of actions or observations.
        what: for the message, for example `"Pong-v5: its observations"`.

    Raises:
        EnvError: the space is of another kind, or too large.
    """
    numbers = 0
    for leaf in _leaves(space, what):
        numbers += math.prod(leaf.shape or ())
    if numbers > MAX_NUMBERS:
        raise EnvError(
            f"{what} have {numbers:,} numbers each, and text has room for {MAX_NUMBERS:,}. "
            "Give a codec of your own: codec='my_module:MyCodec' (plugins/gym/README.md)"
        )


def has_names(space: Any, names: Sequence[str]) -> bool:
    """Whether it is a Discrete space with as many values as there are names."""
    return isinstance(space, spaces.Discrete) and int(space.n) == len(names)


def _leaves(space: Any, what: str) -> Iterator[Any]:
    if isinstance(space, spaces.Tuple):
        for one in space.spaces:
            yield from _leaves(one, what)
    elif isinstance(space, spaces.Dict):
        for one in space.spaces.values():
            yield from _leaves(one, what)
    elif isinstance(space, _SIMPLE):
        yield space
    else:
        raise EnvError(
            f"{what} are of the space {type(space).__name__}, which has no text. "
            "Give a codec of your own: codec='my_module:MyCodec' (plugins/gym/README.md)"
        )


_SIMPLE: tuple[Any, ...] = (spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary, spaces.Box, spaces.Text)


# -- in words ----------------------------------------------------------------------------------------------------------


def in_words(space: Any) -> str:
    """The values of a space for a reader: `a whole number from 0 to 3`."""
    if isinstance(space, spaces.Tuple):
        items = [f"({number}) {in_words(one)}" for number, one in enumerate(space.spaces, 1)]
        return f"a list of {len(items)} items: {'; '.join(items)}"
    if isinstance(space, spaces.Dict):
        keys = [f'"{name}": {in_words(one)}' for name, one in space.spaces.items()]
        return f"an object with these keys: {'; '.join(keys)}"
    if isinstance(space, spaces.Text):
        return _text_in_words(space)
    return _numbers_in_words(space)


def _text_in_words(space: Any) -> str:
    return f"a text in double quotes, of {space.min_length} to {space.max_length} of the characters {space.characters}"


def _numbers_in_words(space: Any) -> str:
    low, high, whole = _bounds(space)
    word = "whole number" if whole else "number"
    ranges = [_range(*bounds) for bounds in zip(_numbers(low.ravel()), _numbers(high.ravel()), strict=True)]
    if not low.shape:
        return f"a {word} {ranges[0]}".rstrip()
    shape = " ".join(f"{'lists' if level else 'a list'} of {size}" for level, size in enumerate(low.shape))
    if len({*ranges}) == 1:
        return f"{shape} {word}s {ranges[0]}".rstrip()
    if low.ndim == 1 and low.size <= MAX_BOUNDS:
        return f"{shape} {word}s: {', '.join(one or 'any' for one in ranges)}"
    return f"{shape} {word}s {_range(_numbers(low.min()), _numbers(high.max()))}".rstrip()


def _range(low: float, high: float) -> str:
    """The range in words; empty where there is none."""
    below, above = abs(low) >= _NO_BOUND, abs(high) >= _NO_BOUND
    if below and above:
        return ""
    if above:
        return f"from {low}"
    return f"up to {high}" if below else f"from {low} to {high}"


_NO_BOUND = 1e30
"""A bound that is as good as none; some environments give the largest float."""


def _bounds(space: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], bool]:
    """Lowest and highest values, of the shape of the space, and whether the numbers are whole."""
    if isinstance(space, spaces.Discrete):
        start = int(space.start)
        return np.asarray(start), np.asarray(start + int(space.n) - 1), True
    if isinstance(space, spaces.MultiDiscrete):
        start = np.asarray(space.start)
        return start, start + np.asarray(space.nvec) - 1, True
    if isinstance(space, spaces.MultiBinary):
        shape = space.shape
        return np.zeros(shape, int), np.ones(shape, int), True
    return np.asarray(space.low), np.asarray(space.high), bool(np.issubdtype(space.dtype, np.integer))


# -- as JSON -----------------------------------------------------------------------------------------------------------


def to_plain(space: Any, value: Any, digits: int | None = None) -> Plain:
    """A value of the space as JSON.

    Args:
        space: the value's.
        value: as Gymnasium has it.
        digits: significant digits of a fraction; `None` keeps it exactly.
    """
    if isinstance(space, spaces.Tuple):
        return [to_plain(one, item, digits) for one, item in zip(space.spaces, value, strict=True)]
    if isinstance(space, spaces.Dict):
        return {name: to_plain(one, value[name], digits) for name, one in space.spaces.items()}
    return value if isinstance(value, str) else _numbers(np.asarray(value), digits)


def _numbers(array: Any, digits: int | None = None) -> Any:
    """The numbers of an array as lists, fractions with the fewest digits that name them, whole ones without a point."""
    if array.ndim:
        return [_numbers(one, digits) for one in array]
    if not np.issubdtype(array.dtype, np.floating):
        return int(array)
    number = float(str(array) if digits is None else f"{float(array):.{digits}g}")
    return int(number) if number.is_integer() and abs(number) < _MAX_WHOLE else number


_MAX_WHOLE = 1e6
"""Larger numbers keep their exponent: `1e+20`."""


def from_plain(space: Any, value: Plain) -> Any:
    """A value of the space from JSON.

    Raises:
        NotInSpaceError: it is not one: of another form, out of range, or a fraction where a whole number is due.
    """
    if isinstance(space, spaces.Tuple):
        return tuple(_items(space.spaces, value))
    if isinstance(space, spaces.Dict):
        inner: dict[str, Any] = space.spaces
        if not isinstance(value, dict) or value.keys() != inner.keys():  # pyright: ignore[reportUnknownMemberType]
            raise NotInSpaceError
        return {name: from_plain(one, value[name]) for name, one in inner.items()}
    found = value if isinstance(space, spaces.Text) else _array(space, value)
    if not space.contains(found):
        raise NotInSpaceError
    return found


def _items(inner: Sequence[Any], value: Plain) -> Iterator[Any]:
    if not isinstance(value, list) or len(cast("list[Any]", value)) != len(inner):
        raise NotInSpaceError
    for one, item in zip(inner, cast("list[Any]", value), strict=True):
        yield from_plain(one, item)


def _array(space: Any, value: Plain) -> Any:
    low, high, whole = _bounds(space)
    numbers = [*_flat(value, low.shape)]
    if whole:
        for number, least, most in zip(numbers, low.ravel().tolist(), high.ravel().tolist(), strict=True):
            if not isinstance(number, int) or not least <= number <= most:
                raise NotInSpaceError
    if isinstance(space, spaces.Discrete):
        return numbers[0]
    try:
        with np.errstate(over="ignore"):
            array: Any = np.asarray(numbers, space.dtype)
    except OverflowError as error:
        raise NotInSpaceError from error
    if not np.all(np.isfinite(array)):
        raise NotInSpaceError
    return array.reshape(low.shape)


def _flat(value: Plain, shape: Sequence[int]) -> Iterator[int | float]:
    """The numbers of nested lists of this shape; true and false are no numbers."""
    if not shape:
        if type(value) not in (int, float):
            raise NotInSpaceError
        yield value
        return
    if not isinstance(value, list) or len(cast("list[Any]", value)) != shape[0]:
        raise NotInSpaceError
    for one in cast("list[Any]", value):
        yield from _flat(one, shape[1:])


# -- for a reader ------------------------------------------------------------------------------------------------------


def shown(space: Any, value: Any) -> str:
    """A value for a reader: fractions with few digits, two dimensions as rows, keys on lines of their own."""
    if isinstance(space, spaces.Dict):
        inner: dict[str, Any] = space.spaces
        return "\n".join(f"{name}:{_beside(shown(one, value[name]))}" for name, one in inner.items())
    if isinstance(space, spaces.Text):
        return str(value)
    plain = to_plain(space, value, DIGITS)
    if isinstance(plain, list) and plain and all(_is_row(one) for one in cast("list[Any]", plain)):
        return "\n".join(" ".join(map(str, row)) for row in cast("list[list[Any]]", plain))
    return json.dumps(plain, ensure_ascii=False)


def _is_row(plain: Plain) -> bool:
    return isinstance(plain, list) and all(isinstance(one, int | float) for one in cast("list[Any]", plain))


def _beside(text: str) -> str:
    return f"\n{text}" if "\n" in text else f" {text}"
