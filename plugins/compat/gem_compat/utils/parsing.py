"""Finding the answer in a text. Every function reads the text once, however long or odd it is."""

from __future__ import annotations

from gem_questions import last_tag as extract_last_tagged_answer
from gem_questions import published_block as extract_code_from_model
from gem_questions import published_box as extract_last_boxed_answer

__all__ = [
    "extract_code_from_model",
    "extract_last_boxed_answer",
    "extract_last_tagged_answer",
    "last_boxed_only_string",
    "remove_boxed",
]

_BOX = "\\boxed{"


def last_boxed_only_string(string: str) -> str | None:
    """The last `\\boxed{...}` with its braces; `None` where there is none, or where it is not closed."""
    content = extract_last_boxed_answer(string)
    return None if content is None else f"{_BOX}{content}}}"


def remove_boxed(s: str | None) -> str | None:
    """The content of a `\\boxed{...}`; `None` where the text is something else."""
    return s[len(_BOX) : -1] if s is not None and s.startswith(_BOX) and s.endswith("}") else None
