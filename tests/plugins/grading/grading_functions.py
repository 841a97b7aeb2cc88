"""Graders that `test_grading.py` names; some are as careless as those of real data sets."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from typing import Any

LOADED_AT = time.time()
reward = 0.0
"""What an answer might like to change."""


def same(answer: str, truth: str) -> float:
    return float(answer == truth)


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


def template() -> int:
    return os.getppid()


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


def fork() -> None:
    os.fork()


_nothing = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(1)
"""A C function at address 1: calling it is a segmentation fault."""
