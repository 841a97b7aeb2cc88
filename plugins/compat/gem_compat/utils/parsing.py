"""Finding the answer in a text. Every function reads the text once, however long or odd it is."""

from __future__ import annotations

import re

_BOX = "\\boxed{"
_FENCE = re.compile(r"```\w*\n")


def last_boxed_only_string(string: str) -> str | None:
    """The last `\\boxed{...}` with its braces; `None` where there is none, or where it is not closed."""
    start = string.rfind(_BOX)
    depth = 0
    for brace in re.compile(r"[{}]").finditer(string, start) if start >= 0 else ():
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return string[start : brace.end()]
    return None


def remove_boxed(s: str | None) -> str | None:
    """The content of a `\\boxed{...}`; `None` where the text is something else."""
    return s[len(_BOX) : -1] if s is not None and s.startswith(_BOX) and s.endswith("}") else None


def extract_last_boxed_answer(solution: str) -> str | None:
    """The content of the last `\\boxed{...}`, or `None`."""
    return remove_boxed(last_boxed_only_string(solution))


def extract_code_from_model(model_response: str) -> str | None:
    """The content of the last complete block between lines of three backticks, or `None`."""
    return _last(model_response, _FENCE, "```")


def extract_last_tagged_answer(model_response: str) -> str | None:
    """The text between the last `<answer>` and `</answer>`, or `None`."""
    return _last(model_response, re.compile("<answer>"), "</answer>")


def _last(text: str, opening: re.Pattern[str], closing: str) -> str | None:
    found, start = None, opening.search(text)
    while start and (end := text.find(closing, start.end())) >= 0:
        found = text[start.end() : end].strip()
        start = opening.search(text, end + len(closing))
    return found
