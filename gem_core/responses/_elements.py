"""Elements: `<tag>...</tag>`."""

from __future__ import annotations

import re
from typing import NamedTuple

_STRING = r"""(?<![\w\\])[rbfuRBFU]{0,2}(?:'{3}[\w\W]*?'{3}|"{3}[\w\W]*?"{3}|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")"""
"""A string of Python, a shell or JavaScript. An apostrophe within a word begins none."""


class Element(NamedTuple):
    """An element."""

    text: str
    """What stands in it."""
    start: int
    """Where its opening tag begins."""
    end: int
    """Where its closing tag ends."""


def element(text: str, tag: str) -> Element | None:
    """The first closed element with this tag.

    A closing tag in a string of the program inside is text. A tag that is opened again before it is closed was only
    mentioned.
    """
    opening, closing = f"<{tag}>", f"</{tag}>"
    start = text.find(opening)
    stop = text.find(closing, start)
    if start < 0 or stop < 0:
        return None
    begin = start
    for token in re.compile(rf"{_STRING}|<(/?){re.escape(tag)}>").finditer(text, start + len(opening)):
        if token[1]:
            return Element(text[begin + len(opening) : token.start()], begin, token.end())
        begin = begin if token[1] is None else token.start()
    start = text.rfind(opening, 0, stop)  # quotes that are no strings hide every closing tag
    return Element(text[start + len(opening) : stop], start, stop + len(closing))
