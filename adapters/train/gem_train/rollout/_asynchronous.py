"""A vector of environments for coroutines."""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from functools import partial
from typing import NamedTuple

from gem_core.errors import ClosedError
from gem_core.vector import Task, Transition, VectorEnv


class Request(NamedTuple):
    """A call for one environment."""

    slot: int
    send: Callable[[], None]
    answer: Future[Transition]


class AsyncVectorEnv:
    """Plays environments of a vector one call at a time, each awaited on its own.

    A thread of its own talks to the vector; no call ever blocks an event loop, and calls from several loops may be
    under way at once.

    Args:
        vec: played by nobody else from now on.
    """

    def __init__(self, vec: VectorEnv) -> None:
        self._vec = vec
        self._error: BaseException | None = None
        self._requests: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        self._answers: dict[int, Future[Transition]] = {}
        self._ended = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._serve, name="gem-async-vector", daemon=True)
        self._thread.start()

    @property
    def error(self) -> BaseException | None:
        """What ended it: a failure that is to stop the run, or that it was closed."""
        return self._error

    async def reset(self, slot: int, task: Task, partner_replies: Sequence[str] = ()) -> Transition:
        """Start an episode of that task in a slot, as `VectorEnv.send_reset`; raises as `step`."""
        return await self._ask(
            slot, partial(self._vec.send_reset, [slot], tasks=[task], partner_replies=partner_replies)
        )

    async def step(self, slot: int, action: str) -> Transition:
        """Play one turn there.

        Canceling this waits for the environment's answer, because the slot is busy until then.

        Raises:
            EnvFailure: a failure stopped the run.
            ClosedError: it is closed.
        """
        return await self._ask(slot, partial(self._vec.send, {slot: action}))

    def close(self) -> None:
        """Close the environments; what is under way raises `ClosedError`. Safe to call twice."""
        self._put(None)
        self._thread.join()

    async def _ask(self, slot: int, send: Callable[[], None]) -> Transition:
        request = Request(slot, send, Future())
        request.answer.set_running_or_notify_cancel()  # nobody can cancel it any more, only stop waiting
        if not self._put(request):
            raise self._error or ClosedError("the environments are closed; build a new runner")
        answer = asyncio.wrap_future(request.answer)
        try:
            return await asyncio.shield(answer)
        except asyncio.CancelledError:
            while not answer.done():
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.wait([answer])
            answer.exception()  # so that nobody complains that it was never looked at
            raise

    def _put(self, request: Request | None) -> bool:
        with self._lock:
            if self._ended:
                return False
            self._requests.put(request)
        self._vec.wake()
        return True

    # -- in the thread ---------------------------------------------------------------------------------------------

    def _serve(self) -> None:
        try:
            while self._error is None:
                self._serve_requests()
                if self._answers:
                    self._settle(self._vec.recv())
        except BaseException as error:
            self._error = error
            self._settle(self._vec.take_completed())  # the episode that stopped the run is told how it ended
            self._end(error)
        with self._lock:
            self._ended = True
            while not self._requests.empty():
                self._serve_request(self._requests.get())
        self._vec.close()

    def _serve_requests(self) -> None:
        """Serve what was asked for; where no answer is awaited, wait for the next request."""
        idle = not self._answers
        while (idle or not self._requests.empty()) and self._error is None:
            self._serve_request(self._requests.get())
            idle = False

    def _serve_request(self, request: Request | None) -> None:
        if request is None:
            self._end(ClosedError("the environments are closed; build a new runner"))
        elif self._error is not None:
            request.answer.set_exception(self._error)
        else:
            self._answers[request.slot] = request.answer
            request.send()

    def _settle(self, transitions: dict[int, Transition]) -> None:
        for slot, transition in transitions.items():
            self._answers.pop(slot).set_result(transition)

    def _end(self, error: BaseException) -> None:
        self._error = self._error or error
        for answer in self._answers.values():
            answer.set_exception(self._error)
        self._answers.clear()
