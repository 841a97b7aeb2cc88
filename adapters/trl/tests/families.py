"""The templates that TRL ships, and the blocks of docs/templates.md about their families."""

from __future__ import annotations

import re
from pathlib import Path

import trl

TEMPLATES = Path(trl.__file__).parent / "chat_templates"
IN_PARTS = {"smolvlm", "idefics3", "llava_next"}
"""Templates that take a content as a list of parts only, and have no calls."""
_PAGE = Path(__file__).parents[3] / "docs" / "templates.md"


def family_rows() -> dict[str, dict[str, list[str]]]:
    """By the name of a template: the words of each row of its family."""
    found: dict[str, dict[str, list[str]]] = {}
    for block in re.findall(r"(?m)^    \S.*\n(?: {8,}\S.*\n)+", _PAGE.read_text("utf-8")):
        values: dict[str, list[str]] = {}
        key = ""
        for line in block.splitlines()[1:]:
            key = line[8:30].strip() or key
            values.setdefault(key, []).extend(line[30:].split())
        found |= dict.fromkeys(values["templates of TRL"], values)
    return found
