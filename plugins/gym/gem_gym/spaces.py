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
from collections.abc import Callable, Iterator, Sequence
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
        numbers += int(np.prod(leaf.shape)) if leaf.shape else 1
    if numbers > MAX_NUMBERS:
        raise EnvError(
            f"{what} have {numbers:,} numbers each, and text has room for {MAX_NUMBERS:,}. "
            "Give a codec of your own: codec='my_module:MyCodec' (docs/gymnasium.md)"
        )


def _leaves(space: Any, what: str) -> Iterator[Any]:
    if isinstance(space, spaces.Tuple):
        for one in cast("Any", space).spaces:
            yield from _leaves(one, what)
    elif isinstance(space, spaces.Dict):
        for one in cast("Any", space).spaces.values():
            yield from _leaves(one, what)
    elif isinstance(space, _SIMPLE):
        yield space
    else:
        raise EnvError(
            f"{what} are of the space {type(space).__name__}, which has no text. "
            "Give a codec of your own: codec='my_module:MyCodec' (docs/gymnasium.md)"
        )


_SIMPLE: tuple[Any, ...] = (spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary, spaces.Box, spaces.Text)


# -- in words ----------------------------------------------------------------------------------------------------------


def in_words(space: Any) -> str:
    """The values of a space for a reader: `a whole number from 0 to 3`."""
    if isinstance(space, spaces.Tuple):
        items = [f"({number}) {in_words(one)}" for number, one in enumerate(cast("Any", space).spaces, 1)]
        return f"a list of {len(items)} items: {'; '.join(items)}"
    if isinstance(space, spaces.Dict):
        keys = [f'"{name}": {in_words(one)}' for name, one in cast("Any", space).spaces.items()]
        return f"an object with these keys: {'; '.join(keys)}"
    if isinstance(space, spaces.Text):
        return _text_in_words(space)
    return _numbers_in_words(space)


def _text_in_words(space: Any) -> str:
    return f"a text in double quotes, of {space.min_length} to {space.max_length} of the characters {space.characters}"


def _numbers_in_words(space: Any) -> str:
    low, high, whole = _bounds(space)
    word = "whole number" if whole else "number"
    ranges = [_range(*bounds) for bounds in zip(low.ravel().tolist(), high.ravel().tolist(), strict=True)]
    if not low.shape:
        return f"a {word} {ranges[0]}".rstrip()
    shape = " of ".join(f"{'a list' if not level else 'lists'} of {size}" for level, size in enumerate(low.shape))
    if len({*ranges}) == 1:
        return f"{shape} {word}s {ranges[0]}".rstrip()
    if low.ndim == 1 and low.size <= MAX_BOUNDS:
        return f"{shape} {word}s: {', '.join(one or 'any' for one in ranges)}"
    return f"{shape} {word}s {_range(low.min().item(), high.max().item())}".rstrip()


def _range(low: float, high: float) -> str:
    """The range in words; empty where there is none."""
    below, above = abs(low) >= _NO_BOUND, abs(high) >= _NO_BOUND
    if below and above:
        return ""
    if above:
        return f"from {_shown_number(low)}"
    return f"up to {_shown_number(high)}" if below else f"from {_shown_number(low)} to {_shown_number(high)}"


_NO_BOUND = 1e30
"""A bound that is as good as none; some environments give the largest float."""


def _bounds(space: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], bool]:
    """Lowest and highest values, of the shape of the space, and whether the numbers are whole."""
    if isinstance(space, spaces.Discrete):
        start = int(cast("Any", space).start)
        return np.asarray(start), np.asarray(start + int(cast("Any", space).n) - 1), True
    if isinstance(space, spaces.MultiDiscrete):
        start = np.asarray(cast("Any", space).start)
        return start, start + np.asarray(cast("Any", space).nvec) - 1, True
    if isinstance(space, spaces.MultiBinary):
        shape = cast("Any", space).shape
        return np.zeros(shape, int), np.ones(shape, int), True
    return np.asarray(space.low), np.asarray(space.high), bool(np.issubdtype(space.dtype, np.integer))


# -- as JSON -----------------------------------------------------------------------------------------------------------


def to_plain(space: Any, value: Any, number: Callable[[float], float] = float) -> Plain:
    """A value of the space as JSON.

    Args:
        space: the value's.
        value: as Gymnasium has it.
        number: what becomes of a fraction; the default keeps it exactly.
    """
    if isinstance(space, spaces.Tuple):
        return [to_plain(one, item, number) for one, item in zip(cast("Any", space).spaces, value, strict=True)]
    if isinstance(space, spaces.Dict):
        return {name: to_plain(one, value[name], number) for name, one in cast("Any", space).spaces.items()}
    return value if isinstance(value, str) else _numbers(np.asarray(value).tolist(), number)


def _numbers(value: Any, number: Callable[[float], float]) -> Plain:
    if isinstance(value, list):
        return [_numbers(one, number) for one in cast("list[Any]", value)]
    return number(value) if isinstance(value, float) else int(value)


def from_plain(space: Any, value: Plain) -> Any:
    """A value of the space from JSON.

    Raises:
        NotInSpaceError: it is not one: of another form, out of range, or a fraction where a whole number is due.
    """
    if isinstance(space, spaces.Tuple):
        return tuple(_items(cast("Any", space).spaces, value))
    if isinstance(space, spaces.Dict):
        inner: dict[str, Any] = cast("Any", space).spaces
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
    for number, least, most in zip(numbers, low.ravel().tolist(), high.ravel().tolist(), strict=True):
        if (whole and not isinstance(number, int)) or not least <= number <= most or not math.isfinite(number):
            raise NotInSpaceError
    if isinstance(space, spaces.Discrete):
        return numbers[0]
    return np.asarray(numbers, cast("Any", space).dtype).reshape(low.shape)


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
        inner: dict[str, Any] = cast("Any", space).spaces
        return "\n".join(f"{name}: {_indented(shown(one, value[name]))}" for name, one in inner.items())
    if isinstance(space, spaces.Text):
        return str(value)
    plain = to_plain(space, value, _shown_number)
    if not isinstance(space, spaces.Tuple) and len(np.shape(value)) == 2:
        return "\n".join(" ".join(map(str, row)) for row in plain)
    return json.dumps(plain, ensure_ascii=False)


def _indented(text: str) -> str:
    return "\n" + text if "\n" in text else text


def _shown_number(number: float) -> float:
    if isinstance(number, int) or not math.isfinite(number):
        return number
    short = float(f"{number:.{DIGITS}g}")
    return int(short) if short.is_integer() and abs(short) < 1e6 else short
