"""Fenced blocks of Markdown."""

from __future__ import annotations

import re
from typing import NamedTuple

_FENCE = re.compile(r"```(\w*)\n")


class Block(NamedTuple):
    """A fenced block."""

    language: str
    """The first word behind the opening fence, in lower case; empty where there is none."""
    text: str
    """What stands in it."""
    start: int
    """Where its opening fence begins."""
    end: int
    """Where its closing fence ends."""
    closed: bool = True
    """Whether it has a closing fence; the last block may lack it."""


def blocks(text: str) -> list[Block]:
    """The blocks of a text, in order."""
    found: list[Block] = []
    fence = _FENCE.search(text)
    while fence:
        end = text.find("```", fence.end())
        if end < 0:
            break
        found.append(Block(fence[1].lower(), text[fence.end() : end], fence.start(), end + 3))
        fence = _FENCE.search(text, end + 3)
    return found
