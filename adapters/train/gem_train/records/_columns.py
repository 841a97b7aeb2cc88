"""Arrays of numbers in few bytes.

Token ids are int32. Numbers per token are integers of 1e-6, so the largest error is 5e-7. NaN and infinities have
codes, and other numbers are clipped to 2,147 in magnitude. Zigzag coding makes small negative integers small positive
ones. The bytes are stored in planes, lowest bytes first, because the upper planes are mostly zeros. Deflate has a mode
for such runs, which costs half of its usual mode and leaves fewer bytes.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gem_train.records._deflate import deflated, inflated

STEP = 1e-6
_RATIO = 32
"""The sequences of a bounded history repeat themselves."""
_NAN, _MINUS_INF, _PLUS_INF = -(2**31), -(2**31) + 1, 2**31 - 1


def packed_ids(ids: ArrayLike, *, repetitive: bool = False) -> bytes:
    """Token ids (M,) as bytes.

    Args:
        ids: int32.
        repetitive: the ids contain long repeats, as the sequences of a bounded history do.
    """
    return _packed(np.asarray(ids, dtype="<i4"), zlib.Z_DEFAULT_STRATEGY if repetitive else zlib.Z_RLE)


def unpacked_ids(packed: bytes, count: int) -> NDArray[np.int32]:
    """The ids of `packed_ids`. Raises `ValueError` or `zlib.error` for other bytes, or another count of ids."""
    return _unpacked(packed, count, "<i4")


def packed_numbers(numbers: ArrayLike) -> bytes:
    """Numbers (M,) as bytes, to 1e-6."""
    exact = np.asarray(numbers, dtype=np.float64)
    steps = np.rint(exact / STEP).clip(_MINUS_INF + 1, _PLUS_INF - 1)
    if not np.isfinite(exact).all():
        steps[np.isnan(exact)] = _NAN
        steps[exact == -np.inf] = _MINUS_INF
        steps[exact == np.inf] = _PLUS_INF
    whole = steps.astype("<i4")
    return _packed((whole << 1) ^ (whole >> 31), zlib.Z_RLE)


def unpacked_numbers(packed: bytes, count: int) -> NDArray[np.float32]:
    """The numbers of `packed_numbers`. Raises `ValueError` or `zlib.error` for other bytes, or another count."""
    coded = _unpacked(packed, count, "<u4")
    whole = (coded >> np.uint32(1)).astype(np.int32) ^ -(coded & np.uint32(1)).astype(np.int32)
    numbers = whole * STEP
    for code, number in ((_NAN, np.nan), (_MINUS_INF, -np.inf), (_PLUS_INF, np.inf)):
        numbers[whole == code] = number
    return numbers.astype(np.float32)


def _packed(numbers: Any, strategy: int) -> bytes:
    planes: Any = np.frombuffer(numbers.tobytes(), dtype=np.uint8)
    return deflated(planes.reshape(-1, 4).T.tobytes(), _RATIO, strategy)


def _unpacked(packed: bytes, count: int, kind: str) -> Any:
    planes: Any = np.frombuffer(inflated(packed, _RATIO, 4 * count), dtype=np.uint8)
    if len(planes) != 4 * count:
        raise ValueError(f"{len(planes)} bytes instead of {count} numbers")
    return np.frombuffer(planes.reshape(4, -1).T.tobytes(), dtype=kind)
