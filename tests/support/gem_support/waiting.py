"""The one way in which tests wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

SECONDS = 120.0
"""Only a failing test waits this long, so a busy machine makes no test fail."""

T = TypeVar("T")


def wait_until(condition: Callable[[], T], what: str = "it did not happen") -> T:
    """Wait until the condition is true and return its value.

    Args:
        condition: called again and again.
        what: of the error.

    Raises:
        AssertionError: it was still false after `SECONDS`.
    """
    deadline = time.monotonic() + SECONDS
    while not (value := condition()):
        assert time.monotonic() < deadline, f"{what}, in {SECONDS:.0f} seconds"
        time.sleep(0.01)
    return value
