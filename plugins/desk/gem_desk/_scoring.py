"""What a conversation is worth: the final database, and the facts that the customer was told."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

READ = 600
"""Characters of a reply in which facts count."""
MAX_NUMBERS = 12
"""Numbers of a reply in which facts count. A reply that lists everything tells nothing."""
_NUMBER = re.compile(r"(?<![\w.])\d{1,9}(?:,\d{3})*(?:\.\d{1,2})?(?![\w]|\.\d)")
_RULE = re.compile(r"\brules?\W{0,3}(\d{1,3})\b")


@dataclass(frozen=True)
class Facts:
    """What has to be told, in replies to the customer; calls are not searched."""

    said: tuple[str, ...] = ()
    """Texts that must occur as whole words, in any case."""
    amounts: tuple[float, ...] = ()
    """Amounts of money that must occur, each in a reply."""
    rule: int | None = None
    """The one rule of the policy that must be named; another rule may not be."""

    def told(self, replies: Sequence[str]) -> bool:
        """Whether the replies tell all of them."""
        read = [reply[:READ].lower() for reply in replies]
        rules = {int(number) for reply in read for number in _RULE.findall(reply)}
        if self.rule is not None and rules != {self.rule}:
            return False
        clear = [reply for reply in read if len(_NUMBER.findall(reply)) <= MAX_NUMBERS]
        numbers = {Decimal(one.replace(",", "")) for reply in clear for one in _NUMBER.findall(reply)}
        amounts = all(Decimal(f"{amount:.2f}") in numbers for amount in self.amounts)
        return amounts and all(any(_occurs(text, reply) for reply in clear) for text in self.said)


def _occurs(text: str, reply: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(text.lower())}(?!\w)", reply) is not None
