"""Environments in threads, for those that wait: network, disk, tools."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from gem_core.vector.autoreset import Autoreset
from gem_core.vector.base import VectorEnv
from gem_core.vector.member import Member


class ThreadVectorEnv(VectorEnv):
    """As many threads as environments, unless `workers` says fewer.

    `close()` waits for calls that are under way: a thread cannot be stopped from outside.
    """

    def __init__(
        self,
        members: Sequence[Member],
        env_ids: Sequence[str],
        *,
        autoreset: Autoreset,
        group_size: int,
        workers: int | None = None,
    ) -> None:
        super().__init__(env_ids, autoreset=autoreset, group_size=group_size)
        self._members = members
        self._pool = ThreadPoolExecutor(workers or len(members), thread_name_prefix="gem-env")
        self._calls: dict[int, Future[None]] = {}
        self._results: dict[int, Any] = {}
        self._arrived = threading.Condition()

    def _submit(self, index: int, method: str, argument: Any) -> None:
        self._calls[index] = self._pool.submit(self._call, index, method, argument)

    def _call(self, index: int, method: str, argument: Any) -> None:
        result: Any
        try:
            result = getattr(self._members[index], method)(argument)
        except BaseException as error:  # a member catches every Exception; what is left must reach the caller
            result = error
        with self._arrived:
            self._results[index] = result
            self._arrived.notify()

    def _receive(self, at_least: int) -> dict[int, Any]:
        with self._arrived:
            # What has arrived stays here while an interruption, such as Ctrl-C, ends the waiting.
            self._arrived.wait_for(lambda: len(self._results) >= at_least)
            results, self._results = self._results, {}
        for result in results.values():
            if isinstance(result, BaseException):
                raise result
        return results

    def _settle(self) -> None:
        wait(self._calls.values())
        self._results.clear()

    def _shut_down(self) -> None:
        self._pool.shutdown(cancel_futures=True)
        for member in self._members:
            member.close()
