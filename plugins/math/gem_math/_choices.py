"""Multiple choice: a letter, alone or with the text that the question has for it."""

from __future__ import annotations

import re
from typing import NamedTuple

_LETTER = re.compile(r"(?:(?:[Oo]ption|[Cc]hoice|[Aa]nswer)\s+)?(?:\(?([A-Ha-h])\)?\.?|([A-H])\))")
_WITH_TEXT = re.compile(
    r"(?:\(([A-H])\)|([A-H])[.):](?=\s|\\))(?:\s|\\[ ,;:]|\\q?quad)*([^\s+*/^=_<>-].*|(?<!\)\s)-.*)", re.DOTALL
)
_ANOTHER = re.compile(
    r"\([A-H]\)|(?<![A-Za-z])[A-H][).:](?!\w)|^(?:or|and|nor|not|is|isn't|&|/|,|;)(?![a-z])|"
    r"(?:[,;/]|\b(?:or|and|nor|not|is|to|through|but))\s*(?:option\s+|choice\s+)?[A-H](?![\w'])",
    re.IGNORECASE,
)
_MARKUP = re.compile(r"\\(?:text(?:rm|bf|it)?|math(?:rm|bf))\s*\{([^{}]*)\}|\\(?:left|right)(?![a-z])")
_OPTION = re.compile(r"\(([A-H])\)|(?:^|(?<=[\s$]))([A-H])[.):](?=\s)")
_EDGE = re.compile(r"(?:\s|[$;,.]|\\\\|\\[ ,;:]|\\q?quad)+$|^(?:\s|[$]|\\[ ,;:]|\\q?quad)+")


class Choice(NamedTuple):
    """A letter, and the text behind it."""

    letter: str
    text: str = ""


def read(answer: str) -> Choice | None:
    """The choice that an answer is: a letter in brackets, in a text or as a capital, or with its text."""
    bare = without_markup(answer).strip().strip("$").strip()
    if (match := _LETTER.fullmatch(bare)) is not None:
        is_variable = bare == answer.strip() and bare.islower() and len(bare) == 1
        return None if is_variable else Choice((match[1] or match[2]).upper())
    if bare[:1] in "(ABCDEFGH" and (match := _WITH_TEXT.fullmatch(bare)) is not None:
        text = match[3].strip()
        is_another = _LETTER.fullmatch(text) or _WITH_TEXT.fullmatch(text)
        return None if is_another else Choice(match[1] or match[2], text)
    return None


def names_another(choice: Choice) -> bool:
    """Does its text go on with another letter, or take it back: `(A) or (B)`?"""
    return bool(_ANOTHER.search(choice.text))


def text_of(letter: str, question: str) -> str:
    """The text that a question has for a letter; empty where it has none."""
    text = without_markup(question)
    marks = [*_OPTION.finditer(text)]
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    found = (text[mark.end() : end] for mark, end in zip(marks, ends, strict=False) if (mark[1] or mark[2]) == letter)
    return _EDGE.sub("", next(found, ""))


def without_markup(text: str) -> str:
    """A text without the commands for its font."""
    return _MARKUP.sub(lambda markup: markup[1] or "", text) if "\\" in text else text
