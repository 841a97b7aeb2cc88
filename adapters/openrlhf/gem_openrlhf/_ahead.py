"""Batches that OpenRLHF's engines play at the same time."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ray
from openrlhf.trainer.ppo_utils.experience import Experience


def together(args: Any) -> bool:
    """Whether OpenRLHF's arguments allow several batches to be under way."""
    # A filter draws more tasks for a batch, which would be those of later ones.
    return bool(args.train.partial_rollout_enable and not args.algo.dynamic_filtering_enable)


@dataclass
class Batch:
    """Tasks whose episodes have begun."""

    waiting: set[Any]
    """Ray's references to the responses that are not read, one per task."""
    states: dict[str, Any]
    """What OpenRLHF needs to continue after this batch."""
    samples: list[Experience] = field(default_factory=list[Experience])
    """Those of the episodes that are over."""
    began: float = field(default_factory=time.monotonic)


class HeldSlots:
    """OpenRLHF's slots for batches, as its training sees them. They become free after the update on their batch.

    OpenRLHF has `k` slots, and frees one when the training takes a batch. So batch `n` begins only when all episodes of
    batch `n - k` are over. The weights that it may begin with are there before, after the update on batch `n - k - 1`.
    With `k + 1` slots that become free then, tokens are as old, and no batch waits for the slowest episodes of another.
    """

    def __init__(self, slots: Any) -> None:
        self._slots = slots
        self._held: list[int] = []

    def put(self, step: int, block: bool = True) -> None:
        """Hold a slot, given back after `step` updates."""
        self._held.append(step)

    def free(self, updates: int = 0) -> None:
        """Free what is held, with the number of updates since it was put."""
        for step in self._held:
            self._slots.put(step + updates)
        self._held.clear()


class BatchesAhead:
    """Episodes of several batches, under way together. Batches are delivered in the order in which they began.

    Args:
        read: makes a task's samples of its response.
        deliver: takes a batch whose episodes are over.
    """

    def __init__(self, read: Callable[[Any], list[Experience]], deliver: Callable[[Batch], None]) -> None:
        self._read = read
        self._deliver = deliver
        self._batches: deque[Batch] = deque()
        self._batch_of: dict[Any, Batch] = {}

    def add(self, batch: Batch) -> None:
        """A batch that has begun."""
        self._batches.append(batch)
        self._batch_of.update(dict.fromkeys(batch.waiting, batch))

    def play(self, until: Any | None = None, *, deliver: bool = True) -> None:
        """Read responses, and deliver batches that are over, until all are read or a reference of Ray is ready."""
        awaited = [] if until is None else [until]
        while waiting := [*awaited, *self._batch_of]:
            ((ready,), _) = ray.wait(waiting)
            if ready == until:
                return
            batch = self._batch_of.pop(ready)
            batch.samples += self._read(ray.get(ready))
            batch.waiting.remove(ready)
            if deliver:
                self.deliver()

    def deliver(self) -> None:
        """Deliver the batches that are over, up to the first that is not."""
        while self._batches and not self._batches[0].waiting:
            self._deliver(self._batches.popleft())
