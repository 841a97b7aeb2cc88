"""Runners that all episodes of a process share."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from gem_train.rollout import EpisodeRunner
from gem_train.settings import Split


class SharedRunners:
    """The runners of a process, one for training and one for evaluation, each built on first use.

    For frameworks that start a coroutine per episode. Safe to use from several threads.
    """

    def __init__(self) -> None:
        self._built: dict[Split, Future[EpisodeRunner]] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Number of runners requested since the last `close`."""
        return len(self._built)

    async def runner(self, split: Split, build: Callable[[], EpisodeRunner]) -> EpisodeRunner:
        """The runner of a split.

        Args:
            split: training or evaluation.
            build: builds the runner, in another thread, because building environments may block. Called once: later
                callers get the same runner, or the same error.

        Raises:
            Exception: what `build` raised.
        """
        with self._lock:
            if split not in self._built:
                self._built[split] = _in_thread(build)
            built = self._built[split]
        # Without the shield, a cancelled episode would cancel the runner for all episodes.
        return await asyncio.shield(asyncio.wrap_future(built))

    def close(self) -> None:
        """Close the runners; a runner that is being built is closed once it is built. Safe to call twice."""
        with self._lock:
            closing = [*self._built.values()]
            self._built.clear()
        for built in closing:
            built.add_done_callback(_close)


def _in_thread(build: Callable[[], EpisodeRunner]) -> Future[EpisodeRunner]:
    executor = ThreadPoolExecutor(1, thread_name_prefix="gem-build")
    built = executor.submit(build)
    executor.shutdown(wait=False)
    return built


def _close(built: Future[EpisodeRunner]) -> None:
    if not built.cancelled() and built.exception() is None:
        built.result().close()
