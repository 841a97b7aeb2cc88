"""Batches of queries from many requests, searched and answered in a separate thread."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from gem_search._retriever import Ranking, Retriever

Answer = Callable[[Sequence[Ranking]], bytes]
"""Makes the answer to a request of the rankings of its queries."""


class Busy(Exception):
    """Too many queries are waiting."""


@dataclass(eq=False)
class _Request:
    count: int
    """Of queries."""
    topk: int
    answer: Answer
    answered: asyncio.Future[bytes]
    rankings: list[Ranking]
    """Of the queries that have been searched."""

    def outcome(self) -> bytes | Exception:
        """The answer, or what making it raised."""
        try:
            return self.answer(self.rankings)
        except Exception as error:
            return error


class Batcher:
    """Collects the queries that arrive while a batch runs, and passes them to the retriever as the next batch.

    Args:
        retriever: used by one thread at a time.
        size: queries of one batch.
        most_waiting: queries that may wait.
    """

    def __init__(self, retriever: Retriever, size: int, most_waiting: int) -> None:
        self._retriever = retriever
        self._size = size
        self._most_waiting = most_waiting
        self._waiting: deque[tuple[str, _Request]] = deque()
        self._running: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="gem-search")

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(wait=False)

    async def search(self, queries: Sequence[str], topk: int, answer: Answer) -> bytes:
        """The thread's answer with the best passages for each query. Raises `Busy`, and any error of `answer`."""
        if len(self._waiting) + len(queries) > self._most_waiting:
            raise Busy
        loop = asyncio.get_running_loop()
        request = _Request(len(queries), topk, answer, loop.create_future(), [])
        self._waiting.extend((query, request) for query in queries)
        if self._running is None:
            self._running = loop.create_task(self._run())
        return await request.answered

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                count = min(self._size, len(self._waiting))
                batch = [self._waiting.popleft() for _ in range(count)]
                for request, outcome in await loop.run_in_executor(self._thread, self._search, batch):
                    if request.answered.done():  # the client may have disconnected
                        continue
                    if isinstance(outcome, Exception):
                        request.answered.set_exception(outcome)
                    else:
                        request.answered.set_result(outcome)
        finally:
            self._running = None

    def _search(self, batch: Sequence[tuple[str, _Request]]) -> list[tuple[_Request, bytes | Exception]]:
        """The requests that this batch ends, with their outcomes."""
        requests = dict.fromkeys(request for _, request in batch)
        try:
            found = self._retriever.search([query for query, _ in batch], max(request.topk for request in requests))
        except Exception as error:
            return [(request, error) for request in requests]
        for (_, request), ranking in zip(batch, found, strict=True):
            request.rankings.append(ranking[: request.topk])
        return [(request, request.outcome()) for request in requests if len(request.rankings) == request.count]
