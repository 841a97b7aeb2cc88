"""Memory that the requests of a server share."""

from __future__ import annotations


class OverBudget(Exception):
    """There is not so much left."""


class ByteBudget:
    """A number of bytes that requests take before they use memory, and give back. For one thread.

    Args:
        total: bytes.
    """

    def __init__(self, total: int) -> None:
        self._left = total

    def share(self) -> ByteShare:
        """A share that has nothing yet."""
        return ByteShare(self)

    def take(self, count: int) -> None:
        """Take bytes. Raises `OverBudget`."""
        if count > self._left:
            raise OverBudget
        self._left -= count

    def give_back(self, count: int) -> None:
        """Give bytes back."""
        self._left += count


class ByteShare:
    """What one request has of a budget."""

    def __init__(self, budget: ByteBudget) -> None:
        self._budget = budget
        self._taken = 0

    def take(self, count: int) -> None:
        """Take more. Raises `OverBudget`."""
        self._budget.take(count)
        self._taken += count

    def give_back(self) -> None:
        """Give all of it back."""
        self._budget.give_back(self._taken)
        self._taken = 0
