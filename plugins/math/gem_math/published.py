"""The verdict that published results rest on: equal texts, numbers or values, and math-verify where they leave it open.

It forgives more than it should: docs/environments.md has the kinds. Training uses `gem_math.verdicts`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from gem_grading import grade
from gem_math import _exact as exact
from gem_math import _values as values
from gem_math._degenerate import is_degenerate

_GRADER = "gem_math.verification:any_equal"


class Ungraded(Exception):
    """math-verify came to no verdict."""


def is_right(given: str, references: Sequence[str], timeout: float) -> bool:
    """Is an answer equal to one of these?

    Args:
        given: what a policy answered.
        references: what is accepted.
        timeout: seconds that math-verify may take.

    Raises:
        Ungraded: math-verify failed or took too long.
    """
    outcomes = [_compared(given, reference) for reference in references]
    if True in outcomes:
        return True
    unclear = tuple(each for each, outcome in zip(references, outcomes, strict=True) if outcome is None)
    if not unclear or not given.strip() or len(given) > exact.MAX_CHARACTERS or is_degenerate(given):
        return False
    return _verified(given, unclear, timeout)


def _compared(given: str, reference: str) -> bool | None:
    outcome = exact.equal(given, reference)
    return values.equal(given, reference) if outcome is None else outcome


@functools.lru_cache(maxsize=4096)  # the answers of a group repeat each other; failures are raised, so not kept
def _verified(given: str, references: tuple[str, ...], timeout: float) -> bool:
    equal, error = grade(_GRADER, given, list(references), timeout=timeout)
    if error is not None:
        raise Ungraded(error)
    return equal is True
