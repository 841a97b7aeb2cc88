"""Fenced blocks of Markdown, as models write them.

The rules are CommonMark's (spec.commonmark.org, "Fenced code blocks"), with these differences:

- A fence may be indented by any amount, and may stand behind other words if at most a language follows it.
- A fence that is indented deeper than the opening one, as in a docstring, and one at the end of a line of code close a
  block only where it would not be closed otherwise.
- A fence closes a block though words follow it, and where a language does, it opens the next block: models forget to
  close one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_RUN = re.compile(r"```+|~~~+")
_PREFIX = re.compile(r"(?:[ \t]|(?:[-*+>]|\d{1,9}[.)])[ \t])*")  # blanks, and marks of a list or a quotation
_QUOTED = re.compile(r"^[ \t]*>[ \t]?", re.MULTILINE)
_WORD = r"[\w+#-][\w+#.-]*"
_AT_MOST_WORD = re.compile(rf"(?:{_WORD})?")
_LANGUAGE = re.compile(rf"[ \t]*[{{.]*({_WORD})?")
_OPENS_ANOTHER = re.compile(rf"[{{.]*{_WORD}[^`]*|[ \t]+{_WORD}[ \t]*")
_INDENT = re.compile(r"(?:[ \t]*\n)*([ \t]*)")
_SLACK = 3
"""Columns by which CommonMark lets a closing fence be indented."""


class Block(NamedTuple):
    """A fenced block."""

    language: str
    """The first word behind the opening fence, in lower case; empty if it has none."""
    text: str
    """What stands in it, with `\\n` for each line end. Behind an indented fence, lines are without the indentation of
    the first one."""
    start: int
    """Where its opening fence begins."""
    end: int
    """Where its closing fence ends."""
    closed: bool = True
    """Whether it has a closing fence. The last block may lack it, and one that the next one begins in."""

    def is_in(self, language: str) -> bool:
        """Whether its language is this one, in any version: `python3.11` is Python, and so is `py`."""
        name = self.language.rstrip("0123456789.")
        return name == language.lower() or (name, language) == ("py", "python")


class _Fence(NamedTuple):
    """A line with a fence."""

    line: int
    """Where the line begins."""
    after: int
    """Where the next line begins."""
    start: int
    """Where the fence begins."""
    run: str
    """The fence itself."""
    info: str
    """What follows on the line."""
    indent: int
    """Columns before the first word of the line, marks of a list or a quotation included."""
    quoted: bool
    """Whether a mark of a quotation stands before it."""
    leads: bool
    """Whether it begins the line."""

    @property
    def end(self) -> int:
        return self.start + len(self.run)

    @property
    def opens_another(self) -> bool:
        return self.leads and _OPENS_ANOTHER.fullmatch(self.info) is not None

    @property
    def language(self) -> str:
        named = _LANGUAGE.match(self.info)
        return (named[1] or "").lower() if named else ""

    def block(self, text: str, closing: _Fence | None, end: int) -> Block:
        """The block that this fence opens: up to its closing fence, or else up to `end`."""
        if closing:
            end = closing.line if closing.leads else closing.start
        inside = re.sub(r"\r\n?", "\n", text[self.after : end]).removesuffix("\n")
        inside = _QUOTED.sub("", inside) if self.quoted else inside
        inside = _dedented(inside) if self.indent else inside
        return Block(self.language, inside, self.start, closing.end if closing else end, closing is not None)


def blocks(text: str) -> list[Block]:
    """The blocks of a text, in order. Takes time linear in its length."""
    found: list[Block] = []
    opening: _Fence | None = None
    doubtful: list[_Fence] = []  # a single one closes the block, and two are a block in a docstring
    for fence in _fences(text) if "```" in text or "~~~" in text else ():
        if opening is None:
            if block := _on_one_line(fence):
                found.append(block)
            elif "`" not in fence.info or fence.run[0] == "~":
                opening, doubtful = fence, []
            continue
        if not fence.run.startswith(opening.run) or "```" in fence.info:
            continue
        depth = fence.indent - opening.indent
        closed_before = _closing(doubtful) is not None and (doubtful[0].leads or fence.opens_another)
        if not (fence.leads and depth <= (_SLACK if closed_before and fence.opens_another else 0)):
            doubtful += [fence] if (depth <= _SLACK if fence.leads else not fence.info.strip()) else []
        elif closed_before:
            found.append(opening.block(text, _closing(doubtful), fence.line))
            opening, doubtful = fence, []
        elif fence.opens_another:
            found.append(opening.block(text, None, fence.line))
            opening, doubtful = fence, []
        elif not fence.info or fence.info[0] in " \t<":
            found.append(opening.block(text, fence, fence.line))
            opening = None
    if opening and text[opening.after :].strip():
        found.append(opening.block(text, _closing(doubtful), len(text)))
    return found


def _closing(doubtful: list[_Fence]) -> _Fence | None:
    return doubtful[0] if len(doubtful) == 1 and not doubtful[0].info.strip() else None


def _on_one_line(fence: _Fence) -> Block | None:
    """A block on a line of its own, which CommonMark takes for a span of code."""
    inside, closing, rest = fence.info.partition(fence.run)
    language, _, program = inside.partition(" ")
    if not (fence.leads and closing and language and program) or rest.strip() or "`" in inside:
        return None
    return Block(language.lower(), program.strip(), fence.start, fence.end + len(inside) + len(closing))


def _fences(text: str) -> Iterator[_Fence]:
    """The lines that have a fence, each looked at once."""
    after = 0
    while run := _RUN.search(text, after):
        line = max(text.rfind("\n", after, run.start()) + 1, after)
        end = text.find("\n", run.end())
        end, after = (len(text), len(text)) if end < 0 else (end, end + 1)
        info = text[run.end() : end].removesuffix("\r")
        prefix = _PREFIX.match(text, line, run.start())
        before = prefix.end() if prefix else line
        leads = before == run.start()
        if leads or (run[0][0] == "`" and _AT_MOST_WORD.fullmatch(info.strip())):
            marks = text[line:before]
            yield _Fence(line, after, run.start(), run[0], info, len(marks.expandtabs(4)), ">" in marks, leads)


def _dedented(text: str) -> str:
    first = _INDENT.match(text)
    width = len(first[1]) if first else 0
    return re.sub(rf"^[ \t]{{1,{width}}}", "", text, flags=re.MULTILINE) if width else text
