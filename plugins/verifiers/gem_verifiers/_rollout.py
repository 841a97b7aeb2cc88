"""A rollout of verifiers that waits for our policy where it would ask a model.

verifiers' loop runs unchanged, as a coroutine: it sets an episode up, asks a model, answers with `env_response`, looks
for the end, cleans up and scores. Its model here is a client that hands each prompt out and waits for the response.
All rollouts of a process run on one event loop, as verifiers has it: what environments and rubrics keep for all their
episodes, such as connections, belongs to that loop.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import threading
import weakref
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from gem_verifiers._messages import MODEL

clients: Any = importlib.import_module("verifiers.clients")

_T = TypeVar("_T")


class Asked(NamedTuple):
    """The environment asks the policy."""

    messages: Sequence[Any]
    """The whole conversation so far."""
    tools: Sequence[Any] | None


class Ended(NamedTuple):
    """The rollout is over and scored."""

    output: Mapping[str, Any]
    """verifiers' `RolloutOutput`."""


class Rollout:
    """One episode.

    Args:
        environment: a `verifiers.Environment`.
        row: of its data set.
    """

    def __init__(self, environment: Any, row: Mapping[str, Any]) -> None:
        self._environment = environment
        self._row = row
        self._client = _Policy()
        self._task: asyncio.Task[Mapping[str, Any]] | None = None

    def begin(self) -> Asked | Ended:
        """Set the episode up. Raises what verifiers raises."""
        return _run(self._begin())

    def answer(self, response: Any) -> Asked | Ended:
        """Go on with a `Response`. Raises what verifiers raises."""
        return _run(self._answer(response))

    def abandon(self) -> None:
        """End an episode before its end, and let the environment clean up."""
        _run(self._abandon())

    async def _begin(self) -> Asked | Ended:
        environment = self._environment
        self._task = asyncio.create_task(environment.run_rollout(self._row, self._client, MODEL, {}))
        # An episode that is dropped without an end ends, too.
        weakref.finalize(self, _loop().call_soon_threadsafe, self._task.cancel).atexit = False
        return await self._next()

    async def _answer(self, response: Any) -> Asked | Ended:
        self._client.waiting.set_result(response)
        return await self._next()

    async def _next(self) -> Asked | Ended:
        assert self._task is not None
        asked = asyncio.create_task(self._client.asked.get())
        await asyncio.wait({asked, self._task}, return_when=asyncio.FIRST_COMPLETED)
        if asked.done():
            prompt, tools, self._client.waiting = asked.result()
            return Asked(prompt, tools)
        asked.cancel()
        return Ended(self._task.result())

    async def _abandon(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


class _Policy(clients.Client):
    """A model of verifiers whose responses come from elsewhere."""

    def __init__(self) -> None:
        super().__init__(None)  # pyright: ignore[reportUnknownMemberType]
        self.asked: asyncio.Queue[tuple[Sequence[Any], Sequence[Any] | None, asyncio.Future[Any]]] = asyncio.Queue()
        self.waiting: asyncio.Future[Any]

    async def get_response(self, prompt: Any, model: str, sampling_args: Any, tools: Any = None, **kwargs: Any) -> Any:
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.asked.put_nowait((list(prompt), tools, answer))
        return await answer

    async def close(self) -> None:
        """Nothing is open."""

    # `get_response` above needs none of what the base class asks for.
    setup_client = to_native_tool = to_native_prompt = get_native_response = None
    raise_from_native_response = from_native_response = None


def _run(coroutine: Coroutine[Any, Any, _T]) -> _T:
    return asyncio.run_coroutine_threadsafe(coroutine, _loop()).result()


@functools.cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="gem-verifiers", daemon=True).start()
    return loop
