"""How many requests an endpoint gets, in virtual time."""

from __future__ import annotations

import asyncio
from collections import deque

import pytest
from virtual_time import run_in_virtual_time

from gem_evaluation._limiter import Limiter


class Endpoint:
    """Accepts `rate` requests in any window, answers after `latency`, and refuses the others at once."""

    def __init__(self, rate: float, latency: float = 0.05, window: float = 1.0) -> None:
        self.rate, self.latency, self.window = rate, latency, window
        self.taken_by_others: list[tuple[float, float]] = []
        self.accepted: list[float] = []
        self._recent: deque[float] = deque()

    async def ask(self) -> bool:
        now = asyncio.get_running_loop().time()
        while self._recent and self._recent[0] <= now - self.window:
            self._recent.popleft()
        if len(self._recent) >= self.rate or any(a <= now < b for a, b in self.taken_by_others):
            await asyncio.sleep(0.005)
            return False
        self._recent.append(now)
        self.accepted.append(now)
        await asyncio.sleep(self.latency)
        return True

    def between(self, begin: float, end: float) -> float:
        """Accepted requests a second."""
        return sum(begin <= one < end for one in self.accepted) / (end - begin)


async def client(limiter: Limiter, endpoint: Endpoint, retry_after: float) -> None:
    while True:
        turn = await limiter.acquire()
        if await endpoint.ask():
            limiter.succeeded(turn)
        else:
            limiter.refused(turn, retry_after)
            await asyncio.sleep(retry_after)


async def played(endpoint: Endpoint, seconds: float, clients: int = 1000) -> Limiter:
    limiter = Limiter()
    running = [asyncio.ensure_future(client(limiter, endpoint, 89.0)) for _ in range(clients)]
    await asyncio.sleep(seconds)
    for one in running:
        one.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    return limiter


@pytest.mark.parametrize("rate", [5, 50, 200])
@pytest.mark.parametrize("latency", [0.05, 2.0])
def test_the_pace_stays_near_what_is_accepted(rate: int, latency: float) -> None:
    endpoint = Endpoint(rate, latency)
    run_in_virtual_time(played(endpoint, 200.0))
    assert endpoint.between(30, 200) >= 0.9 * rate


def test_the_former_pace_is_back_soon_after_others_had_taken_all() -> None:
    endpoint = Endpoint(50)
    endpoint.taken_by_others = [(50.0, 55.0), (100.0, 101.0), (140.0, 160.0)]
    run_in_virtual_time(played(endpoint, 200.0))
    for _, end in endpoint.taken_by_others:
        assert endpoint.between(end + 10, end + 40) >= 0.9 * 50


def test_a_quota_by_the_minute_is_used() -> None:
    endpoint = Endpoint(600, window=60.0)
    run_in_virtual_time(played(endpoint, 600.0))
    assert endpoint.between(120, 600) >= 0.9 * 10
