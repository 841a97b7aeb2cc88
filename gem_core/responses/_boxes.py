"""Boxes: `\\boxed{...}`."""

from __future__ import annotations

import re

_BOX = r"(?i:boxed|fbox)\s*\{"
_FIRST = re.compile(rf"\\{_BOX}")
_MARKS = re.compile(rf"(?P<box>\\{_BOX})|\\[\\{{}}](?!{_BOX})|(?P<brace>[{{}}])")
_MATHEMATICS = (("$$", "$$"), ("$", "$"), ("\\(", "\\)"), ("\\[", "\\]"))


def boxes(text: str) -> list[str]:
    """What stands in each closed box, in order, without white space and signs of mathematics around it.

    `\\boxed {5}`, `\\Boxed{5}` and `\\fbox{5}` are boxes, too. Of boxes inside of each other only the inner ones are
    named. A brace with a backslash is text. Takes time linear in the length.
    """
    found: list[tuple[int, str]] = []
    opened: list[int] = []  # where the content of a box begins, and -1 for another group
    first = _FIRST.search(text)  # what stands before it is not looked at
    for mark in _MARKS.finditer(text, first.start()) if first else ():
        if mark["box"]:
            opened.append(mark.end())
        elif mark["brace"] == "{":
            opened.append(-1)
        elif mark["brace"] and opened:
            start = opened.pop()
            if start >= 0 and not (found and found[-1][0] > start):
                found.append((start, text[start : mark.start()]))
    return [_bare(content) for _, content in found]


def last_box(text: str) -> str | None:
    """What stands in the last closed box, as `boxes` has it, or `None`."""
    return next(reversed(boxes(text)), None)


def _bare(content: str) -> str:
    content = content.strip()
    if content[:1] not in ("$", "\\"):
        return content
    for opening, closing in _MATHEMATICS:
        inside = content[len(opening) : -len(closing)]
        if content == f"{opening}{inside}{closing}" and not ("$" in inside or "\\" + opening[-1] in inside):
            return inside.strip()
    return content
