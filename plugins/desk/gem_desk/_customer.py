"""A customer with a script: the same replies get the same answers."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

GOODBYE = "Thank you, that is all."
_READ = 4000
"""Characters of a reply that the customer reads."""


@dataclass(frozen=True)
class Detail:
    """A part of a wish, told when it is asked for or when its turn comes."""

    asks: tuple[str, ...]
    """Words of a question that it answers, in lower case."""
    says: str


class Customer:
    """Reveals a wish bit by bit.

    | the reply | the answer |
    | --- | --- |
    | has words of details that were not told | these details |
    | is a question with words of details that were told | these once more |
    | is anything else, and details are left | the next one |
    | is another question, and everything was told | yes |
    | is no question, or asks for anything else, and everything was told | goodbye, which ends the conversation |

    A question is a reply with a question mark.

    Args:
        opening: the first message.
        details: what is told later, in this order unless asked for.
    """

    def __init__(self, opening: str, details: Sequence[Detail]) -> None:
        self.opening = opening
        self.details = tuple(details)
        self.told: list[int] = []

    @classmethod
    def of(cls, script: Mapping[str, Any]) -> Customer:
        """The customer of a task."""
        return cls(script["opening"], [Detail(tuple(one["asks"]), one["says"]) for one in script["details"]])

    def answer(self, reply: str) -> str | None:
        """The answer to a reply; `None` means that the customer has left."""
        words = {*re.findall(r"[a-z]+", reply[:_READ].lower())}
        question = "?" in reply
        fitting = [at for at, detail in enumerate(self.details) if not words.isdisjoint(detail.asks)]
        left = [at for at in range(len(self.details)) if at not in self.told]
        fresh = [at for at in fitting if at in left]
        if fresh:
            return self._say(fresh)
        if question and fitting:
            return self._say(fitting)
        if left:
            return self._say(left[:1])
        return "Yes, please." if question and "else" not in words else None

    def _say(self, chosen: Sequence[int]) -> str:
        self.told += [at for at in chosen if at not in self.told]
        return " ".join(self.details[at].says for at in chosen)
