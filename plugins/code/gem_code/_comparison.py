"""What a program printed or returned, against what a test wants."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, NamedTuple, TypeGuard, cast

_LINE_END = re.compile(r"\r\n?|\n")
_BLANKS = re.compile(r"(\s+)")
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_WHOLE = re.compile(r"[+-]?\d+", re.ASCII)


class Comparison(NamedTuple):
    """How outputs are compared."""

    tolerance: float | None = None
    """Numbers may be apart by this much, absolutely, or relative to the larger one where none that is whole is wanted;
    words are compared one by one."""
    published: bool = False
    """Without a tolerance: texts are the same up to white space at both ends, as in published results."""


def same_output(printed: str, wanted: str, by: Comparison) -> bool:
    """Whether these are the same.

    By default, lines are compared, with any line end and without white space behind them; that in front counts where a
    line that is wanted has some. A decimal number that is wanted may be written in another way: `0.5` for `0.50`.

    Args:
        printed: by a program.
        wanted: by a test.
        by: see there.
    """
    if printed.strip() == wanted.strip():
        return True
    if by.tolerance is not None:
        ours, theirs = printed.split(), wanted.split()
        return len(ours) == len(theirs) and all(map(_close, ours, theirs, [by.tolerance] * len(ours)))
    return not by.published and _same_lines(printed.strip(), wanted.strip())


def same_value(returned: Any, wanted: Any, tolerance: float | None, *, is_python: bool) -> bool:
    """Whether a function returned what is wanted: as Python compares, but for numbers within the tolerance.

    Where it `is_python` that is wanted, `True` is 1. JSON tells them apart.
    """
    if not is_python and isinstance(returned, bool) != isinstance(wanted, bool):
        return False
    same = functools.partial(same_value, tolerance=tolerance, is_python=is_python)
    if _is_number(returned) and _is_number(wanted):
        return returned == wanted or (tolerance is not None and _close(str(returned), str(wanted), tolerance))
    if type(returned) is type(wanted) and isinstance(wanted, (list, tuple)):
        ours, theirs = cast("list[Any]", returned), cast("list[Any]", wanted)
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    if isinstance(returned, dict) and isinstance(wanted, dict):
        found, expected = cast("dict[Any, Any]", returned), cast("dict[Any, Any]", wanted)
        return found.keys() == expected.keys() and all(same(found[key], expected[key]) for key in found)
    return bool(returned == wanted)


def as_json(value: Any) -> Any:
    """A value as JSON has it: tuples are lists, and keys are texts."""
    if isinstance(value, (list, tuple)):
        return [as_json(each) for each in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {str(key): as_json(each) for key, each in cast("Mapping[Any, Any]", value).items()}
    return value


def _same_lines(printed: str, wanted: str) -> bool:
    theirs = [line.rstrip() for line in _LINE_END.split(wanted)]
    indented = any(line[:1].isspace() for line in theirs)
    ours = [line.rstrip() if indented else line.strip() for line in _LINE_END.split(printed)]
    return len(ours) == len(theirs) and all(map(_same_line, ours, theirs))


def _same_line(printed: str, wanted: str) -> bool:
    if printed == wanted:
        return True
    ours, theirs = _BLANKS.split(printed), _BLANKS.split(wanted)
    return len(ours) == len(theirs) and all(map(_same_word, ours, theirs))


def _same_word(printed: str, wanted: str) -> bool:
    return printed == wanted or (not wanted.lstrip("+-").isdigit() and _close(printed, wanted, 0.0))


def _close(printed: str, wanted: str, tolerance: float) -> bool:
    if printed == wanted:
        return True
    if not (_NUMBER.fullmatch(printed) and _NUMBER.fullmatch(wanted)):
        return False
    try:
        ours, theirs = Decimal(printed), Decimal(wanted)  # a float of 400 digits is infinite, and equal to any other
        largest = Decimal(1) if _WHOLE.fullmatch(wanted) else max(Decimal(1), abs(ours), abs(theirs))
        allowed = Decimal(tolerance) * largest
        return ours == theirs or abs(ours - theirs) <= allowed
    except (ArithmeticError, ValueError):
        return False


def _is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, (int, float))
