"""How many examples of a property the tests of each Python look at."""

from __future__ import annotations

import sys

_ALL = (3, 11)
"""The Python of the adapters, which runs every test at length."""


def examples(count: int) -> int:
    """That many on one Python, and a sixth on the others.

    Examples are the same on each: a fault of the code shows where all are, and one of a Python in any of them.
    """
    return count if sys.version_info[:2] == _ALL else max(5, count // 6)
