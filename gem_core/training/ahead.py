"""Sampling in a thread that runs ahead of the training, by a bounded number of updates."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from gem_core.rollout import Batch, BatchCollector


class StalenessBound:
    """The pace of a collector whose batches are trained in the order of its rounds.

    Round `r` may begin once the weights of version `version_of(r) - max_staleness` are published. It is trained at
    version `version_of(r)`, and every token of it is sampled after its beginning. So no token is older than
    `max_staleness` updates when it is trained on, and no episode has to be discarded. Thread-safe.

    Args:
        max_staleness: the bound, in weight updates.
        rounds: how many rounds the training needs; no more are begun.
        version_of: for a round, counted from 0, the number of updates before the first update on it. Never falls.
    """

    def __init__(self, max_staleness: int, rounds: int, version_of: Callable[[int], int]) -> None:
        self._max_staleness = max_staleness
        self._most = rounds
        self._version_of = version_of
        self._allowed = 0
        self._stopped = False
        self._changed = threading.Condition()

    def publish(self, version: int) -> None:
        """Say that weights of this version sample from now on. Versions never fall."""
        with self._changed:
            newest = version + self._max_staleness
            while self._allowed < self._most and self._version_of(self._allowed) <= newest:
                self._allowed += 1
            self._changed.notify_all()

    def stop(self) -> None:
        """Have `rounds` and `wait` raise `SamplingStopped` from now on."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def rounds(self) -> int:
        """The number of rounds that may be begun by now."""
        with self._changed:
            if self._stopped:
                raise SamplingStopped
            return self._allowed

    def wait(self, rounds: int) -> None:
        """Wait until more than `rounds` may be begun."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or self._allowed > rounds)
            if self._stopped:
                raise SamplingStopped


class SamplingStopped(Exception):
    """The training has ended, and so does the thread that samples."""


class SamplingThread:
    """Plays rounds in a thread, and hands out their batches in order.

    The training calls `publish` when weights are new, then `take` for its next batch. An error of the thread is raised
    by `take`. The thread ends after the last round, with an error, or at `close`.

    Args:
        collector: used by the thread only, until `close` returns.
        bound: its pace.
        rounds: how many rounds to play.
    """

    def __init__(self, collector: BatchCollector, bound: StalenessBound, rounds: int) -> None:
        self._collector = collector
        self._bound = bound
        self._rounds = rounds
        self._batches: deque[Batch] = deque()
        self._error: BaseException | None = None
        self._over = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._sample, name="gem-sampling", daemon=True)
        self._thread.start()

    def publish(self, version: int) -> None:
        """Say that the policy samples with weights of this version from now on."""
        self._bound.publish(version)
        self._collector.wake()

    def take(self) -> Batch:
        """Wait for the next batch.

        Raises:
            RuntimeError: all rounds have been taken.
            Exception: what ended the thread.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._batches or self._over)
            if self._batches:
                return self._batches.popleft()
        if self._error is not None:
            raise self._error
        raise RuntimeError(f"all {self._rounds} batches of this training have been taken")

    def close(self) -> None:
        """End the thread and wait for it: for the policy if it samples right now, not for environments."""
        self._bound.stop()
        self._collector.wake()
        self._thread.join()

    def _sample(self) -> None:
        try:
            for _ in range(self._rounds):
                batch = self._collector.collect_paced(self._bound)
                with self._changed:
                    self._batches.append(batch)
                    self._changed.notify_all()
        except SamplingStopped:
            pass
        except BaseException as error:
            self._error = error
        finally:
            with self._changed:
                self._over = True
                self._changed.notify_all()
