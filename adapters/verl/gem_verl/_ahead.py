"""The batches that are played before verl trains on them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from gem_train.ahead import StalenessBound


@dataclass(frozen=True)
class BegunBatch:
    """A batch whose episodes have begun."""

    tasks: frozenset[str] = frozenset()
    """verl's names of its tasks."""
    position: dict[str, Any] = field(default_factory=dict[str, Any])
    """The state of verl's data loader behind these tasks."""


class BatchesAhead:
    """Begins batches within the bound, and trains on them in the order of their tasks.

    verl's own asynchronous sampler takes what finishes first. Then an episode that is overtaken again and again exceeds
    any bound, or has to be discarded.

    Args:
        ahead: how many steps a token may be older than the weights that train on it.
        steps: how many steps the training has left.
    """

    def __init__(self, ahead: int, steps: int) -> None:
        self._bound = StalenessBound(ahead, steps)
        self._begun = 0
        self._waiting: deque[BegunBatch] = deque()
        self._current = BegunBatch()

    def advance(self) -> int:
        """Say that the weights for the next step sample from now on. Returns how many batches to begin now."""
        self._bound.advance()
        return self._bound.rounds() - self._begun

    def add(self, tasks: Iterable[str], position: dict[str, Any]) -> None:
        """Begin a batch. Arguments as in `BegunBatch`."""
        self._begun += 1
        self._waiting.append(BegunBatch(frozenset(tasks), position))

    def take(self) -> None:
        """Train on the next batch from now on."""
        self._current = self._waiting.popleft()

    @property
    def due(self) -> frozenset[str]:
        """The tasks of the batch that is trained on."""
        return self._current.tasks

    def state_dict(self) -> dict[str, Any]:
        """The state of the data loader behind the batch that is trained on, as verl saves it."""
        return self._current.position
