"""How far a collector may run ahead of the training."""

from __future__ import annotations

from typing import Protocol


class RoundBudget(Protocol):
    """Says how many rounds a collector may have begun. A round is one episode, or group, in every environment."""

    def rounds(self) -> int:
        """The number of rounds that may be begun by now. It never falls. An exception ends the collecting."""
        ...

    def wait(self, rounds: int) -> None:
        """Wait until more than `rounds` may be begun. An exception ends the collecting."""
        ...
