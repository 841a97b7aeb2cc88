"""The program in an answer."""

from __future__ import annotations

import re
from textwrap import dedent

from gem_core.responses import Block, blocks

_SHOWN = (">>>", "$ ", "Traceback (most recent call last)")
"""What a line begins with that shows how something is run, and what came of it."""
_STATEMENT = r"^[ \t]*(?:def\s+\w+\s*\(|class\s+\w+\s*[(:]|import\s+\w|from\s+[\w.]+\s+import\b)"
_WORK = re.compile(rf"\b(?:print|write|writelines)\s*\(|\bmap\(\s*print\b|{_STATEMENT}", re.MULTILINE)
"""What a program has and an example of its output has not."""
_CODE = re.compile(rf"[=(]|{_STATEMENT}", re.MULTILINE)
"""What has at least to be in a block that says to be Python."""


def last_program(text: str, function: str | None = None) -> str | None:
    """The last Python program of an answer, or `None`.

    A block that says to be Python is one, and a block without a language that prints, writes, imports or defines
    something; what shows a session, or values alone, is none. The last block need not be closed.

    Args:
        text: the answer.
        function: a program that defines it comes before all others, as an example of a call may follow it.
    """
    programs = [_dedented(block.text) for block in blocks(text) if _is_program(block)]
    if function is not None:
        definition = re.compile(rf"\bdef\s+{re.escape(function)}\s*\(|^\s*{re.escape(function)}\s*=", re.MULTILINE)
        programs = [program for program in programs if definition.search(program)] or programs
    return programs[-1] if programs else None


def _dedented(program: str) -> str:
    # `dedent` changes lines of blanks, which may stand in a string, so it is left out where it is not needed.
    return dedent(program) if program.lstrip("\n").startswith((" ", "\t")) else program


def _is_program(block: Block) -> bool:
    if block.language and not block.is_in("python"):
        return False
    lines = (line.strip() for line in block.text.split("\n"))
    first = next((line for line in lines if line and not line.startswith("#")), None)
    if first is None or first.startswith(_SHOWN):
        return False
    return bool((_CODE if block.language else _WORK).search(block.text))
