"""How many requests an endpoint gets at a time, and how many a second."""

from __future__ import annotations

import asyncio
from collections import deque

FIRST_LIMIT = 16
LAST_LIMIT = 1024
WINDOW = 1.0
"""Seconds over which accepted requests are counted."""
GROWTH = 1.01
"""By how much the pace grows in a second without a refusal."""
CAUTION = 0.97
"""The share of what an endpoint accepted that it gets after a refusal."""
COLLAPSE = 0.5
"""Where less than this share of the pace is accepted, what is accepted is the new pace."""
GAIN = 1.1
"""A higher limit must multiply the responses per second by at least this factor, otherwise the limit stays."""
PATIENCE = 20
"""Windows without a gain after which a higher limit is tried again."""
IN_A_ROW = 4
"""Refusals without anything accepted between them after which an endpoint counts as closed."""
FIRST_PAUSE, MAX_PAUSE = 1.0, 60.0
"""Seconds between the requests that a closed endpoint gets."""


class Limiter:
    """Finds the limits of an endpoint: requests at a time and, where it refuses some, requests a second.

    - The number at a time doubles as long as that brings more responses, and shrinks when the endpoint is overloaded.
    - After a refusal (429), requests are paced at a little less than what was accepted, and the pace grows slowly.
    - An endpoint that refuses everything gets one request at a time, with growing pauses. Once it accepts one, it gets
      its former pace.

    Times are those of the running event loop, and a limiter belongs to one event loop.

    Args:
        limit: requests at a time; `None` finds out.
    """

    def __init__(self, limit: int | None = None) -> None:
        self.limit = float(limit or FIRST_LIMIT)
        """Requests at a time."""
        self.refusals = 0
        """Requests that were refused."""
        self._fixed = limit is not None
        self._rate: float | None = None
        self._rate_since = 0.0
        self._next = 0.0
        self._in_flight = 0
        self._waiting: deque[asyncio.Future[float]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._sent: deque[float] = deque()
        self._refused: deque[float] = deque()
        self._refused_in_a_row = 0
        self._closed_since: float | None = None
        self._pause = FIRST_PAUSE
        self._growth = _Growth()

    @property
    def rate(self) -> float | None:
        """Requests a second; `None` where nothing was refused yet."""
        return None if self._rate is None else self._rate * GROWTH ** (_now() - self._rate_since)

    async def acquire(self) -> float:
        """Wait for a turn; returns when it came. Give it back with `succeeded`, `refused`, `overloaded` or `failed`."""
        turn: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._admit()
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.failed()
            raise

    def succeeded(self, sent: float) -> None:
        """A response came to the request of that turn."""
        self._refused_in_a_row = 0
        if self._closed_since is not None and sent >= self._closed_since:
            self._closed_since, self._pause = None, FIRST_PAUSE
        busy = self._in_flight >= int(self.limit) and bool(self._waiting)
        if not self._fixed and self._growth.is_due(_now(), int(self.limit), busy):
            self.limit = min(2 * self.limit, LAST_LIMIT)
        self._release()

    def refused(self, sent: float, retry_after: float | None = None) -> None:
        """The endpoint refused the request of that turn, because it gets too many.

        Args:
            sent: the turn.
            retry_after: seconds that the endpoint asks to wait.
        """
        now = _now()
        self.refusals += 1
        self._refused_in_a_row += 1
        self._refused.append(sent)
        accepted = self._accepted(now)
        if accepted > 0:
            self._slow_down(now, sent, CAUTION * accepted / WINDOW)
        if self._closed_since is not None:
            if sent >= self._closed_since:  # the request that was to find out
                asked = MAX_PAUSE if retry_after is None else max(retry_after, FIRST_PAUSE)
                self._pause = min(2 * self._pause, asked, MAX_PAUSE)
                self._next = now + self._pause
        elif self._refused_in_a_row >= IN_A_ROW or accepted <= 0:
            self._closed_since, self._next = now, now + self._pause
        self._release()

    def overloaded(self) -> None:
        """The endpoint failed as one that has too much to do."""
        if not self._fixed:
            self.limit = max(1.0, 0.8 * self.limit)
        self._growth = _Growth()
        self._release()

    def failed(self) -> None:
        """The request ended, and says nothing about the endpoint's limits."""
        self._release()

    def _slow_down(self, now: float, sent: float, rate: float) -> None:
        # What was sent before the last change says nothing about the pace since.
        if self._rate is None or sent > self._rate_since:
            paced = CAUTION * (self.rate or rate)
            self._rate = rate if self._rate is None or rate < COLLAPSE * paced else paced
            self._rate_since = now

    def _accepted(self, now: float) -> int:
        for times in (self._sent, self._refused):
            while times and times[0] <= now - WINDOW:
                times.popleft()
        return len(self._sent) - len(self._refused)

    def _release(self) -> None:
        self._in_flight -= 1
        self._admit()

    def _admit(self) -> None:
        """Give turns to as many as may have one now."""
        while self._waiting and self._in_flight < (int(self.limit) if self._closed_since is None else 1):
            now = _now()
            if now < self._next:
                self._admit_at(self._next)
                return
            turn = self._waiting.popleft()
            if turn.done():  # it was cancelled
                continue
            if (rate := self.rate) is not None:
                self._next = max(self._next, now) + 1 / rate
            self._sent.append(now)
            self._in_flight += 1
            turn.set_result(now)

    def _admit_at(self, moment: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(moment, self._admit)


class _Growth:
    """Whether a higher limit brings more responses."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._responses = 0
        self._best = 0.0
        self._without_gain = 0

    def is_due(self, now: float, limit: int, busy: bool) -> bool:
        """Take note of a response.

        Args:
            now: the time.
            limit: requests at a time.
            busy: all of them are under way, and more are waiting.

        Returns:
            Whether a window ended with more responses a second than any before.
        """
        if self._since is None or not busy:
            self._since, self._responses = now, 0
            return False
        self._responses += 1
        seconds = now - self._since
        if seconds < WINDOW or self._responses < limit:
            return False
        throughput = self._responses / seconds
        self._since, self._responses = now, 0
        if throughput > GAIN * self._best:
            self._best, self._without_gain = throughput, 0
            return True
        self._without_gain += 1
        if self._without_gain >= PATIENCE:
            self._best, self._without_gain = 0.0, 0
        return False


def _now() -> float:
    return asyncio.get_running_loop().time()
