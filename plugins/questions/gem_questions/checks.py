"""Checks of the values that environments over data sets are built with."""

from __future__ import annotations

import math
import operator
from typing import Any

from gem_core.errors import EnvError

MAX_SECONDS = 3600.0
"""Seconds that one answer may take at most."""


def finite(name: str, value: Any) -> float:
    """A finite number. Raises `EnvError`."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise EnvError(f"{name} must be a finite number, and is {value!r:.80}")
    return value


def seconds(name: str, value: Any) -> float:
    """A time limit. Raises `EnvError`."""
    if not 0 < finite(name, value) <= MAX_SECONDS:
        raise EnvError(f"{name} must be above 0 and {MAX_SECONDS:g} seconds at most, and is {value!r:.80}")
    return value


def whole(name: str, value: Any, least: int) -> int:
    """A whole number, not below the least. Raises `EnvError`."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool) or number < least:
        raise EnvError(f"{name} must be a whole number, {least} at least, and is {value!r:.80}")
    return number
