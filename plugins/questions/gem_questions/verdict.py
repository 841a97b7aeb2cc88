"""What an answer is worth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Verdict:
    """What an answer is worth; true if it is right.

    Example:
        >>> from gem_questions import Verdict
        >>> half = Verdict(0.5, info={"words": 12})
        >>> half.reward, bool(half)
        (0.5, False)
    """

    reward: float
    correct: bool = False
    found: bool = True
    """There was an answer in the text."""
    info: Mapping[str, Any] = field(default_factory=lambda: dict[str, Any]())
    """What else to say; the info of the step has it, too."""
    unread: str = ""
    """What could not be read, `answer` or `reference`, and was compared as it is written; nothing if all was read."""

    def __bool__(self) -> bool:
        return self.correct


RIGHT, WRONG = Verdict(1.0, correct=True), Verdict(0.0)
