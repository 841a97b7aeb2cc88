"""Finding the answer in a text, where `gem_core.responses` does not: in tags, and as published results do.

These rest on gem-llm 0.1.0. Every function reads the text once, however long or odd it is.
"""

from __future__ import annotations

import re

_BOX = "\\boxed"
_OPEN, _CLOSE = "<answer>", "</answer>"
_BRACE = re.compile(r"[{}]")
_FENCE = re.compile(r"```\w*\n")


def last_tag(text: str) -> str | None:
    """What stands between the last `<answer>` and `</answer>`, without white space around it, or `None`."""
    found = None
    start = text.find(_OPEN)
    while start >= 0:
        end = text.find(_CLOSE, start)
        if end < 0:
            break
        found = (start + len(_OPEN), end)
        start = text.find(_OPEN, end)
    return text[slice(*found)].strip() if found else None


def published_box(text: str) -> str | None:
    """What stands in the last `\\boxed{...}`, as it is; `None` where there is none, or where it is not closed.

    A brace with a backslash counts as a brace, as in published results. `gem_core.responses.last_box` is ours.
    """
    start = text.rfind(_BOX)
    if start < 0 or not text.startswith("{", start + len(_BOX)):
        return None
    depth = 0
    for brace in _BRACE.finditer(text, start):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return text[start + len(_BOX) + 1 : brace.start()]
    return None


def published_block(text: str) -> str | None:
    """What stands between the last two of three backticks, without white space around it, or `None`.

    Any word may follow the first three, and nothing else; the others may stand anywhere. `gem_core.responses.blocks` is
    ours.
    """
    found = None
    fence = _FENCE.search(text)
    while fence:
        end = text.find("```", fence.end())
        if end < 0:
            break
        found = (fence.end(), end)
        fence = _FENCE.search(text, end + 3)
    return text[slice(*found)].strip() if found else None
