"""The runner that all managers of an environment worker share."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from gem_core.vector import Task
from gem_train.rollout import AsyncPolicy, ChatTemplate, Episode, EpisodeRunner
from gem_train.settings import Split


class SharedRunner:
    """Plays episodes for many threads, in its own event loop.

    Args:
        runner: plays the episodes; `close` closes it.
    """

    def __init__(self, runner: EpisodeRunner) -> None:
        self._runner = runner
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="gem-runner", daemon=True)
        self._thread.start()

    @property
    def template(self) -> ChatTemplate:
        """Of the conversations."""
        return self._runner.template

    def play(self, policy: AsyncPolicy, task: Task) -> list[Episode]:
        """Play a task once; blocks. Result and errors as `EpisodeRunner.play`."""
        playing = self._runner.play(policy, task)
        return asyncio.run_coroutine_threadsafe(playing, self._loop).result()

    def close(self) -> None:
        """Close the environments."""
        self._runner.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@dataclass
class _Lease:
    runner: SharedRunner
    users: int = 0


_leases: dict[Split, _Lease] = {}
_lock = threading.Lock()


@contextmanager
def shared_runner(split: Split, build: Callable[[], EpisodeRunner]) -> Iterator[SharedRunner]:
    """The runner of this process for a split. The first user builds the runner, the last one closes it.

    Args:
        split: training or evaluation.
        build: builds the `EpisodeRunner`.
    """
    with _lock:
        if split not in _leases:
            _leases[split] = _Lease(SharedRunner(build()))
        lease = _leases[split]
        lease.users += 1
    try:
        yield lease.runner
    finally:
        with _lock:
            lease.users -= 1
            if not lease.users:
                del _leases[split]
                lease.runner.close()
