"""Environments in threads, for those that wait: network, disk, tools."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from gem_core.interrupts import uninterrupted
from gem_core.vector._calls import CallOutcome, EnvCall, failure_of
from gem_core.vector._hosted import HostedEnv
from gem_core.vector._pool import CLOSE_SECONDS, PooledVectorEnv, Worker
from gem_core.waiting import set_call_clock

_log = logging.getLogger("gem_core.vector")


class Arrivals:
    """Outcomes from many threads for one, which is woken once for as many as it asked for."""

    def __init__(self) -> None:
        self._items: deque[tuple[ThreadWorker, int, CallOutcome]] = deque()
        self._wanted = float("inf")
        self._wake: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._poked = False

    def put(self, item: tuple[ThreadWorker, int, CallOutcome]) -> None:
        """Add one; any thread."""
        self._items.append(item)
        if len(self._items) >= self._wanted:
            self._wake.put(None)

    def poke(self) -> None:
        """Have `wait` return with what has arrived; callable from any thread."""
        self._poked = True
        self._wake.put(None)

    def wait(self, wanted: int, timeout: float | None) -> None:
        """Wait until `wanted` outcomes have arrived, or for `timeout` seconds."""
        self._wanted = wanted
        try:
            while len(self._items) < wanted and not self._poked:
                self._wake.get(timeout=timeout)
        except queue.Empty:
            pass
        finally:
            self._wanted, self._poked = float("inf"), False

    def take(self) -> list[tuple[ThreadWorker, int, CallOutcome]]:
        """All outcomes that have arrived."""
        return [self._items.popleft() for _ in range(len(self._items))]


class ThreadWorker(Worker):
    """A thread. Once given up, it ends as soon as its call runs Python again: no thread can be stopped from outside."""

    def __init__(self, slots: Sequence[int], hosted: Mapping[int, HostedEnv], arrivals: Arrivals) -> None:
        super().__init__(slots)
        self._hosted = hosted
        for slot, one in hosted.items():
            one.tick = partial(self._begin, slot)
        self._arrivals = arrivals
        self._inbox: queue.SimpleQueue[Mapping[int, EnvCall] | None] = queue.SimpleQueue()
        self._running: tuple[int, float] | None = None  # one value, as another thread reads it
        self._paused: tuple[int, float] | None = None
        self._paused_at = 0.0
        self._killed = False
        self._thread = threading.Thread(target=self._work, name=f"gem-env-{slots[0]}", daemon=True)
        self._thread.start()

    def submit(self, calls: Mapping[int, EnvCall]) -> None:
        self._inbox.put(calls)

    def pause(self) -> None:
        """The environment at work waits for its turn at something shared, which takes none of its time."""
        self._paused, self._running = self._running, None
        self._paused_at = time.monotonic()

    def resume(self) -> None:
        """It has its turn."""
        if self._paused is not None:
            slot, since = self._paused
            self._running = slot, since + time.monotonic() - self._paused_at

    def running(self) -> tuple[int, float] | None:
        return self._running

    def kill(self) -> None:
        self._killed = True
        self._inbox.put(None)
        if self._running is not None:  # the environment may be in an endless loop
            import ctypes  # takes 2 ms, and only a hang needs it

            thread = ctypes.c_ulong(self._thread.ident or 0)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(SystemExit))

    def end(self) -> None:
        self._inbox.put(None)

    def join(self, timeout: float) -> bool:
        self._thread.join(timeout)
        if self._thread.is_alive():
            _log.warning("environments %s did not close within %g s; they are left behind", self.slots, CLOSE_SECONDS)
        return not self._thread.is_alive()

    def _work(self) -> None:
        set_call_clock(self)
        while (calls := self._inbox.get()) is not None and not self._killed:
            for slot, call in calls.items():
                if not self._killed:
                    self._perform(slot, call)
            self._running = None
        for hosted in self._hosted.values():
            hosted.close()

    def _perform(self, slot: int, call: EnvCall) -> None:
        self._begin(slot)
        try:
            self._hosted[slot].perform(call, self._emit)
        except KeyboardInterrupt as error:  # its own: Ctrl-C goes to the main thread
            self._hosted[slot].close()
            self._emit(slot, failure_of(error))

    def _emit(self, slot: int, outcome: CallOutcome) -> None:
        self._arrivals.put((self, slot, outcome))

    def _begin(self, slot: int, opening: bool = False) -> None:
        self._running = (slot, time.monotonic())


class ThreadVectorEnv(PooledVectorEnv[ThreadWorker]):
    """As many threads as environments, unless `workers` says fewer.

    A call that overruns its time limit costs its thread, which ends as soon as the call runs Python again; `close()`
    waits for such a call for a few seconds at most.
    """

    def __init__(self, build_hosted: Callable[[int], HostedEnv], *args: Any, **settings: Any) -> None:
        self._build_hosted = build_hosted
        self._arrivals = Arrivals()
        super().__init__(*args, **settings)

    def _start_worker(self, slots: Sequence[int]) -> ThreadWorker:
        return ThreadWorker(slots, {slot: self._build_hosted(slot) for slot in slots}, self._arrivals)

    def _wake(self) -> None:
        self._arrivals.poke()

    def _poll(self, wanted: int, timeout: float | None) -> None:
        self._arrivals.wait(wanted, timeout)
        with uninterrupted():  # from before they are taken: Ctrl-C must lose none
            for worker, slot, outcome in self._arrivals.take():
                if worker is self._workers[self._home[slot]]:  # and no thread that was given up
                    self._arrive(slot, outcome)
