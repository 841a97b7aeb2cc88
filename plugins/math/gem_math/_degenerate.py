"""Answers that are refused before math-verify sees them: they would take it long, and nobody means them."""

from __future__ import annotations

import re

MAX_DEPTH = 40

_BRACKET = re.compile(r"\\left\.|[(\[{]|(\\right\.|[)\]}])")
_TOWER = re.compile(r"(?:(?:\^|\*\*)[\s{(]*[+-]?\d[\d.]*\s*){3}")
_FACTORIALS = re.compile(r"(?:!\s*){4}")


def is_degenerate(answer: str) -> bool:
    """Brackets that do not close or nest too deep, a tower of powers, or a row of factorials. Takes one pass each."""
    return bool(_TOWER.search(answer) or _FACTORIALS.search(answer)) or not _closes(answer)


def _closes(answer: str) -> bool:
    # Kinds are not told apart, because [0, 1) is an interval.
    depth = 0
    for bracket in _BRACKET.finditer(answer):
        depth += -1 if bracket[1] else 1
        if depth > MAX_DEPTH:
            return False
    return depth == 0
