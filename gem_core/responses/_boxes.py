"""Boxes: `\\boxed{...}`."""

from __future__ import annotations

import re

_BOX = "\\boxed"
_BRACE = re.compile(r"[{}]")


def boxes(text: str) -> list[str]:
    """What stands in each closed box, in order, without boxes inside of boxes."""
    found: list[str] = []
    start = text.find(_BOX)
    while start >= 0:
        end = _end(text, start)
        if end:
            found.append(text[start + len(_BOX) + 1 : end])
        start = text.find(_BOX, end or start + len(_BOX))
    return found


def last_box(text: str) -> str | None:
    """What stands in the last box; `None` where there is none, or where it is not closed."""
    start = text.rfind(_BOX)
    end = _end(text, start) if start >= 0 else None
    return None if end is None else text[start + len(_BOX) + 1 : end]


def _end(text: str, start: int) -> int | None:
    if not text.startswith("{", start + len(_BOX)):
        return None
    depth = 0
    for brace in _BRACE.finditer(text, start):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return brace.start()
    return None
