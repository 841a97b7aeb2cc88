"""What the backends with workers do alike: who lives where, time limits, and workers that are lost."""

from __future__ import annotations

import os
import time
import weakref
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Generic, TypeVar

from gem_core.errors import EnvError, FailureKind
from gem_core.interrupts import uninterrupted
from gem_core.vector._base import VectorEnv
from gem_core.vector._calls import CallOutcome, EnvCall, FailedCall, Reset, Transition
from gem_core.vector._tasks import TaskPlan

MAX_LOSSES = 5
"""A worker that is lost this often, with no environment to blame and without an answer in between, stops the run."""
CLOSE_SECONDS = 5.0
"""How long `close()` waits for calls under way and for the environments' own `close()`."""
_MAX_WAIT = 3600.0
"""One wait; the operating system cannot be asked for an endless one."""


class Worker(ABC):
    """Where some environments live; it performs their calls one after the other, and may be lost.

    Args:
        slots: those whose environments live here.
    """

    def __init__(self, slots: Sequence[int]) -> None:
        self.slots = tuple(slots)

    @abstractmethod
    def submit(self, calls: Mapping[int, EnvCall]) -> None:
        """Hand over calls without waiting for anything."""

    @abstractmethod
    def running(self) -> tuple[int, float] | None:
        """The slot at work, and when its present call began on the monotonic clock."""

    @abstractmethod
    def kill(self) -> None:
        """Give it up at once, whatever it is doing. Safe to call twice."""

    @abstractmethod
    def end(self) -> None:
        """Ask it to close its environments and stop, without waiting."""

    @abstractmethod
    def join(self, timeout: float) -> bool:
        """Wait for that; false if it did not stop in time."""


_W = TypeVar("_W", bound=Worker)


class PooledVectorEnv(VectorEnv, Generic[_W]):
    """Members spread over workers, neighbours together.

    A worker that is lost takes all its environments with it. The one at work has failed; the others are built again
    elsewhere and brought back to where they stood by playing the same actions on the same seed.

    Args:
        plan: which tasks the slots play.
        workers: number of workers.
        settings: of `VectorEnv`.
    """

    def __init__(self, plan: TaskPlan, workers: int, **settings: Any) -> None:
        super().__init__(plan, **settings)
        count = plan.num_envs
        self._home = [slot * workers // count for slot in range(count)]
        self._workers: dict[int, _W] = {}
        """By the number that `_home` gives."""
        self._next_check = 0.0
        self._losses: Counter[int] = Counter()
        # Registered before the first worker starts, and with the mapping itself: a vector that nobody closed, or whose
        # constructor raised, leaves nothing behind either, at the latest when the process ends.
        weakref.finalize(self, _kill_all, self._workers, os.getpid())
        for number in range(workers):
            self._workers[number] = self._start_worker([slot for slot in range(count) if self._home[slot] == number])

    @abstractmethod
    def _start_worker(self, slots: Sequence[int]) -> _W:
        """A worker with fresh environments."""

    @abstractmethod
    def _poll(self, wanted: int, timeout: float | None) -> None:
        """Pass on outcomes to `_arrive` and losses to `_lose`; wait as `_gather` does."""

    def _start(self, calls: Mapping[int, EnvCall]) -> None:
        # Ctrl-C between noting a call and sending it would leave a slot that is waited for and never answers.
        with uninterrupted():
            super()._start(calls)

    def _submit(self, calls: Mapping[int, EnvCall]) -> None:
        if len(self._workers) == 1:
            self._workers[0].submit(calls)
            return
        parts: dict[int, dict[int, EnvCall]] = {}
        for slot, call in calls.items():
            parts.setdefault(self._home[slot], {})[slot] = call
        for number, part in parts.items():
            self._workers[number].submit(part)

    def _gather(self, wanted: int, timeout: float | None) -> None:
        now, longest = time.monotonic(), 0.0
        if now >= self._next_check:
            # Answers first: a worker may have answered in time while nobody was looking. Then the limits, whose
            # failures may be what the caller waits for; so this round does not wait.
            self._poll(0, 0.0)
            self._next_check = self._check_time(now)
        elif wanted > 0:
            longest = min(self._next_check - now, _MAX_WAIT)
        self._poll(wanted, longest if timeout is None else min(max(timeout, 0.0), longest))

    def _arrive(self, slot: int, outcome: CallOutcome) -> None:
        if self._losses:
            self._losses.pop(self._home[slot], None)
        super()._arrive(slot, outcome)

    def _check_time(self, now: float) -> float:
        """Lose the workers whose call overran the limit; returns when to look again."""
        limit = self.failures.timeout
        if limit is None:
            return float("inf")
        soonest = now + limit  # no call that starts later can overrun before that
        for worker in list(self._workers.values()):
            running = worker.running()
            if running is None:
                continue
            if now - running[1] > limit:
                self._lose(worker, FailureKind.TIMEOUT, f"TimeoutError: no answer within {limit:g} s", running[0])
            else:
                soonest = min(soonest, running[1] + limit)
        return soonest

    def _lose(self, worker: _W, kind: FailureKind, error: str, blamed: int | None) -> None:
        """Replace a worker, and continue its calls but for that of the slot blamed, which has failed.

        Raises:
            EnvError: workers are lost one after the other, and no environment is to blame.
        """
        number = self._number(worker)
        self._losses[number] += blamed is None
        if self._losses[number] >= MAX_LOSSES:
            raise EnvError(
                f"a worker was lost {MAX_LOSSES} times in a row with no environment at work. The last one: {error}. "
                "Look for what ends them from outside, such as a want of memory."
            )
        self._replace(worker, blamed)
        # The neighbors have started. The failure comes last: what it leads to, a retry or the next episode, is a call
        # to the new worker as well, and a plugin that is asked may take its time or raise.
        if blamed in self._calls:
            self._arrive(blamed, FailedCall(kind, error, place=error))

    def _replace(self, worker: _W, blamed: int | None) -> None:
        """Replace this worker by a new one, and make the calls under way again but for that of one slot."""
        number = self._number(worker)
        # Dead before its successor lives: two workers must not hold the same files, ports or GPUs.
        worker.kill()
        slots = [slot for slot in worker.slots if self._home[slot] == number]
        # Lost before `_again` asks for the calls: only a lost environment is replayed.
        for slot in slots:
            self._states[slot].lose()
        # In its place before anything arrives: what the old worker still says is recognized as that of a stranger.
        self._workers[number] = self._start_worker(worker.slots)
        calls = {slot: self._calls[slot] for slot in slots if slot in self._calls and slot != blamed}
        self._start({slot: self._again(slot, call) for slot, call in calls.items()})

    def _fits(self, slot: int, outcome: CallOutcome) -> bool:
        """Whether an outcome is one of the call under way: a reset has an opening, and a turn has a transition."""
        return type(outcome) is FailedCall or (type(outcome) is Transition) is not isinstance(self._calls[slot], Reset)

    def _number(self, worker: _W) -> int:
        return next(number for number, one in self._workers.items() if one is worker)

    def _shut_down(self) -> None:
        # All are asked before any is waited for, so they close side by side and share one deadline.
        workers = [*self._workers.values()]
        for worker in workers:
            worker.end()
        deadline = time.monotonic() + CLOSE_SECONDS
        for worker in workers:
            if not worker.join(max(0.0, deadline - time.monotonic())):
                worker.kill()


def _kill_all(workers: Mapping[int, Worker], owner: int) -> None:
    for worker in workers.values() if os.getpid() == owner else ():  # they are not a forked child's to end
        worker.kill()
