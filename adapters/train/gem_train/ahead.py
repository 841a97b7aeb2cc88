"""Sampling in a thread that runs ahead of the training by a bounded number of batches."""

from __future__ import annotations

import threading
from collections import deque

from gem_train.rollout import Batch, BatchCollector


class StalenessBound:
    """The pace of a collector whose rounds are trained on in order. Thread-safe.

    When the training asks for batch `b`, the weights that train on it are published, and rounds up to `b + ahead` may
    begin. So every token of round `r` is sampled with the weights of batch `r - ahead` or newer ones, and no episode
    has to be discarded.

    Args:
        ahead: how many batches a token may be older than the batch that it is in.
        rounds: how many rounds the training needs; no more are begun.
    """

    def __init__(self, ahead: int, rounds: int) -> None:
        self._ahead = ahead
        self._most = rounds
        self._published = 0
        self._stopped = False
        self._changed = threading.Condition()

    def advance(self) -> None:
        """Say that the weights for one more batch sample from now on."""
        with self._changed:
            self._published += 1
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

    @property
    def _allowed(self) -> int:
        return min(self._most, self._published + self._ahead) if self._published else 0


class SamplingStopped(Exception):
    """The training has ended, and so does the thread that samples."""


class SamplingThread:
    """Plays rounds in a thread, and hands out their batches in order.

    The training publishes its weights to the policy, then calls `take` for its next batch. The thread ends after the
    last round, with an error, or at `close`.

    Args:
        collector: used by the thread only, until `close` returns.
        ahead: see `StalenessBound`.
        rounds: how many batches the training needs.
    """

    def __init__(self, collector: BatchCollector, ahead: int, rounds: int) -> None:
        self._collector = collector
        self._rounds = rounds
        self._bound = StalenessBound(ahead, rounds)
        self._batches: deque[Batch] = deque()
        self._error: BaseException | None = None
        self._over = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._sample, name="gem-sampling", daemon=True)
        self._thread.start()

    def take(self) -> Batch:
        """The next batch. The policy has the weights that train on it.

        Raises:
            Exception: what ended the thread.
            RuntimeError: all batches have been taken.
        """
        self._bound.advance()
        self._collector.wake()
        with self._changed:
            self._changed.wait_for(lambda: self._batches or self._over)
            if self._batches:
                return self._batches.popleft()
        if self._error is not None:
            raise self._error
        raise RuntimeError(f"all {self._rounds} batches of this training have been taken")

    def close(self) -> None:
        """End the thread and wait for it: for the policy if it samples right now, not for environments that wait."""
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
