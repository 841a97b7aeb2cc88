"""The answer in what a data set has as one: in a box, after the `####` of GSM8K, or all of it."""

from __future__ import annotations

import functools
import importlib.util
import itertools
import re
from collections.abc import Iterator, Sequence

from gem_core.errors import MissingExtraError
from gem_core.installation import install_line
from gem_core.responses import boxes

_MARKED = re.compile(r"(?:^|\s)####(?!#)[ \t]*([^\s#][^\n#]*?)\s*\Z")
_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}")
_END = re.compile(r"[.!?]\s|\n\s*\n")
_OR = re.compile(r"\bor\b", re.IGNORECASE)
_MAX_GAP = 60
"""Characters between two boxes of one answer."""
_FEW_WORDS, _MANY_WORDS = 4, 7
"""Fewer words may be a name or a unit; more than many are no answer, even where all of them can be read."""


def answer_of(reference: str, *, published: bool = False) -> str:
    """The answer in a reference: what is boxed, what follows `####` in its last line, or all of it.

    Of several boxes those in the last one's sentence are the answer, or with `published` the last one alone.

    Example:
        >>> from gem_math.references import answer_of
        >>> answer_of("Ann has 3 * 6 = 18 eggs left.\\n#### 18"), answer_of("so $x = \\\\boxed{4}$."), answer_of("7")
        ('18', '4', '7')
    """
    if found := boxes(reference):
        return found[-1] if published else _joined(reference, found)
    marked = _MARKED.search(reference)
    return marked[1] if marked else reference


def _joined(reference: str, found: Sequence[str]) -> str:
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


@functools.lru_cache(maxsize=4096)  # the reference of a group is asked for again and again
def is_read(answer: str) -> bool:
    """Does the grammar read this? What it does not read is right only where both are written alike."""
    from gem_math._answers import Listing, Words  # these need mpmath, which may not be installed
    from gem_math._structure import read
    from gem_math._tokens import Unread

    try:
        readings = read(answer)
    except Unread:
        return False
    parts = [part for each in readings for part in (each.parts if isinstance(each, Listing) else [each])]
    words = len(_WORD.findall(answer))
    return not all(isinstance(part, Words) for part in parts) or words <= max(_MANY_WORDS, 2 * len(parts))


def is_prose(reference: str) -> bool:
    """Is the answer of this reference sentences, so that no answer can mean the same?"""
    answer = answer_of(reference)
    return len(_WORD.findall(answer)) >= _FEW_WORDS and not is_read(answer)


def need(module: str) -> None:
    """Raises `MissingExtraError` where a module that grades is not installed."""
    if importlib.util.find_spec(module) is None:
        raise MissingExtraError(
            f"grading mathematics needs the module {module!r}, which is not installed. Next: {install_line('math')}"
        )
