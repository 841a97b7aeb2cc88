"""Batches of queries from many requests, answered in a separate thread."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from gem_search._index import Index
from gem_search._retriever import Ranking


class Busy(Exception):
    """Too many queries are waiting."""


@dataclass(frozen=True)
class _Waiting:
    query: str
    topk: int
    ranking: asyncio.Future[Ranking]


class Batcher:
    """Collects the queries that arrive while a batch runs, and passes them to the index as the next batch.

    Args:
        index: searched by one thread at a time.
        size: queries of one batch.
        most_waiting: queries that may wait.
    """

    def __init__(self, index: Index, size: int, most_waiting: int) -> None:
        self._index = index
        self._size = size
        self._most_waiting = most_waiting
        self._waiting: deque[_Waiting] = deque()
        self._running: asyncio.Task[None] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="gem-search")

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(wait=False)

    async def search(self, queries: Sequence[str], topk: int) -> list[Ranking]:
        """The best passages for each query. Raises `Busy`."""
        if len(self._waiting) + len(queries) > self._most_waiting:
            raise Busy
        loop = asyncio.get_running_loop()
        mine = [_Waiting(query, topk, loop.create_future()) for query in queries]
        self._waiting.extend(mine)
        if self._running is None:
            self._running = loop.create_task(self._run())
        return await asyncio.gather(*(each.ranking for each in mine))

    async def _run(self) -> None:
        try:
            while self._waiting:
                count = min(self._size, len(self._waiting))
                await self._answer([self._waiting.popleft() for _ in range(count)])
        finally:
            self._running = None

    async def _answer(self, batch: Sequence[_Waiting]) -> None:
        queries, topk = [each.query for each in batch], max(each.topk for each in batch)
        try:
            found = await asyncio.get_running_loop().run_in_executor(self._thread, self._index.search, queries, topk)
        except Exception as error:
            for each in batch:
                if not each.ranking.done():
                    each.ranking.set_exception(error)
            return
        for each, ranking in zip(batch, found, strict=True):
            if not each.ranking.done():  # the client may have disconnected
                each.ranking.set_result(ranking[: each.topk])
