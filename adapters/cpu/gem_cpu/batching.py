"""Batches requests that arrive together, and answers them on a thread."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, TypeVar

from gem_cpu.sampling import Request

WAIT = 0.003
"""Seconds to wait for more requests for a batch. Each new request starts the wait again."""
MAX_BATCH = 64

_Answer = TypeVar("_Answer")
_T = TypeVar("_T")


class Batcher(Generic[_Answer]):
    """Collects the requests of an event loop into batches.

    Args:
        generate: answers a batch, in order; called on the batcher's thread.
    """

    def __init__(self, generate: Callable[[Sequence[Request]], Sequence[_Answer]]) -> None:
        self._generate = generate
        self._waiting: asyncio.Queue[tuple[Request, asyncio.Future[_Answer]]] = asyncio.Queue()
        self._thread = ThreadPoolExecutor(1)  # one thread, so that weights never change within a batch
        self._batching: asyncio.Task[None] | None = None

    async def ask(self, request: Request) -> _Answer:
        """The answer to a request. Raises the error of its batch."""
        if self._batching is None:
            self._batching = asyncio.create_task(self._batch_for_ever())
        answer: asyncio.Future[_Answer] = asyncio.get_running_loop().create_future()
        self._waiting.put_nowait((request, answer))
        return await answer

    async def run(self, function: Callable[..., _T], *arguments: Any) -> _T:
        """Call a function on the thread, between two batches."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)

    async def _batch_for_ever(self) -> None:
        while True:
            batch = [await self._waiting.get()]
            before = -1
            while before < self._waiting.qsize() < MAX_BATCH:
                before = self._waiting.qsize()
                await asyncio.sleep(WAIT)
            while not self._waiting.empty() and len(batch) < MAX_BATCH:
                batch.append(self._waiting.get_nowait())
            await self._answer(batch)

    async def _answer(self, batch: Sequence[tuple[Request, asyncio.Future[_Answer]]]) -> None:
        asking = [future for _, future in batch]
        try:
            answers = await self.run(self._generate, [request for request, _ in batch])
        except Exception as error:
            for future in asking:
                if not future.done():  # the caller may have given up
                    future.set_exception(error)
            return
        for future, answer in zip(asking, answers, strict=True):
            if not future.done():
                future.set_result(answer)


def seed_from(*values: Any) -> int:
    """A seed derived from the values."""
    return int.from_bytes(hashlib.blake2b(repr(values).encode(), digest_size=7).digest(), "big")
