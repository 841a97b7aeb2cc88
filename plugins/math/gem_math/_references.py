"""References as data sets have them: an answer, or a text with the answer in one box or in several."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from gem_core.responses import boxes

_END = re.compile(r"[.!?]\s|\n\s*\n")
_OR = re.compile(r"\bor\b", re.IGNORECASE)
_MAX_GAP = 60
"""Characters between two boxes of one answer."""


def answer_of(reference: str) -> str:
    """The answer that a reference states: what its last box has, with the boxes before it in the same sentence."""
    found = boxes(reference)
    if not found:
        return reference
    answer = found[-1]
    seen = {answer}
    for content, gap in reversed([*_with_gaps(reference, found)]):
        if len(gap) > _MAX_GAP or _END.search(gap):
            break
        if content not in seen:
            answer = content + (" \\text{ or } " if _OR.search(gap) else ", ") + answer
        seen.add(content)
    return answer


def _with_gaps(text: str, found: Sequence[str]) -> Iterator[tuple[str, str]]:
    """All boxes but the last, each with what stands between it and the next one."""
    place = text.index(found[0])
    for content, after in itertools.pairwise(found):
        end = place + len(content)
        place = text.index(after, end)
        yield content, text[end:place]
