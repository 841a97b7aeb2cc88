"""The arguments that graders without an environment share: an answer and its references."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

from gem_core.responses import speech_of


def speech_in(answer: Any) -> str:
    """The answer without thoughts. Raises `TypeError` if it isn't a text."""
    if not isinstance(answer, str):
        raise TypeError(f"the answer must be a text, and is {answer!r:.80}")
    return speech_of(answer)


def read_references(reference: Any, read: Callable[[Any], str]) -> list[str]:
    """The references, each as `read` reads it.

    Args:
        reference: one, or a list of them.
        read: the text of one.

    Raises:
        ValueError: there is none.
    """
    one_of: Any = [reference] if isinstance(reference, (str, numbers.Number)) else reference
    references = [read(each) for each in (() if one_of is None else one_of)]
    if not any(each.strip() for each in references):
        raise ValueError(f"there is no reference: {reference!r:.80}")
    return references
