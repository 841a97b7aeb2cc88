"""Graders that `test_grading.py` names; some are as careless as those of real data sets."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
import time
from typing import Any

LOADED_AT = time.time()
reward = 0.0
"""What an answer might like to change."""


def same(answer: str, truth: str) -> float:
    return float(answer == truth)


def close(value: Any, truth: float) -> float:
    return float(type(value) in (int, float) and abs(value - truth) < 1e-9)


def echo(value: Any) -> Any:
    return value


def evaluate(answer: str) -> Any:
    return eval(answer)


def execute(answer: str) -> Any:
    names: dict[str, Any] = {}
    exec(answer, names)
    return names.get("result")


def patchable(answer: str) -> float:
    if answer.startswith("import"):
        exec(answer, {})
    return reward


def process() -> int:
    return os.getpid()


def loaded_at() -> float:
    return LOADED_AT


def sleep(seconds: float) -> str:
    time.sleep(seconds)
    return "slept"


def length(text: str) -> int:
    return len(text)


def text_of(size: int) -> str:
    return "x" * size


def fill(size: int) -> int:
    return len(bytearray(size))


def leave(code: int) -> None:
    sys.exit(code)


def vanish(code: int) -> None:
    os._exit(code)


def crash() -> None:
    _nothing(0)


def recurse(depth: int = 0) -> int:
    return recurse(depth + 1) + 1


def unrefused(numbers: list[int]) -> list[int]:
    """Those of these system calls that do not fail for want of permission."""
    return [number for number in numbers if _call(number) != errno.EPERM]


def _call(number: int) -> int:
    ctypes.set_errno(0)
    _libc.syscall(ctypes.c_long(number), *[ctypes.c_long(-1)] * 6)
    return ctypes.get_errno()


_libc = ctypes.CDLL(None, use_errno=True)
_nothing = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(1)
"""A C function at address 1: calling it is a segmentation fault."""
