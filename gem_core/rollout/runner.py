"""Rollouts one coroutine per episode, for frameworks whose engine is asynchronous."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from gem_core.env import Env
from gem_core.errors import ClosedError
from gem_core.registry import build, spec
from gem_core.rollout.builder import EpisodeBuilder
from gem_core.rollout.policy import AsyncPolicy
from gem_core.rollout.records import Episode
from gem_core.rollout.session import Session
from gem_core.rollout.settings import RolloutSettings
from gem_core.rollout.template import Tokenizer
from gem_core.vector.autoreset import Autoreset
from gem_core.vector.member import Member

_T = TypeVar("_T")


class EpisodeRunner:
    """Plays episodes concurrently; each environment blocks a thread of its own, never the event loop.

    Args:
        env_id: the environment.
        policy: samples the completion of one prompt.
        tokenizer: of the policy; with a chat template.
        settings: how episodes become prompts.
        seed: the episode of task `i` has the seed `derive_seed(seed, i, 0)`, as environment `i` of a vector has.
        max_concurrent: so many episodes at once, each with one thread; further ones wait.
        env_kwargs: override the spec's keyword arguments.
        wrappers: applied to each environment in this order.

    Raises:
        NotFoundError, DuplicateIdError: as `gem_core.spec`.
        TemplateError: the tokenizer cannot carry a conversation.
        ValueError: `max_concurrent` below 1.
    """

    def __init__(
        self,
        env_id: str,
        policy: AsyncPolicy,
        tokenizer: Tokenizer,
        settings: RolloutSettings,
        *,
        seed: int,
        max_concurrent: int = 64,
        env_kwargs: Mapping[str, Any] | None = None,
        wrappers: Sequence[Callable[[Env], Env]] = (),
    ) -> None:
        if max_concurrent < 1:
            raise ValueError(f"max_concurrent must be at least 1, not {max_concurrent}")
        self._spec = spec(env_id)
        self._policy = policy
        self._settings = settings
        self._template = settings.template(tokenizer)
        self._seed = seed
        self._build = partial(build, self._spec, dict(env_kwargs or {}), tuple(wrappers))
        self._max_concurrent = max_concurrent
        self._loop: asyncio.AbstractEventLoop | None = None
        self._places = asyncio.Semaphore(max_concurrent)
        self._closed = False
        self._session = Session([env_id], settings)

    async def run(self, task: int) -> Episode | None:
        """Play one episode of a task. Cancelling it waits for the call under way, and closes the environment.

        Args:
            task: decides the seed; episodes of one task form a group.

        Returns:
            The episode, or `None` where a plugin dropped it because its environment failed.

        Raises:
            PolicyError: the policy broke its contract. What the policy itself raises passes through.
            EnvFailure: a plugin wants the run stopped.
            ClosedError: the runner is closed.
        """
        if self._closed:
            raise ClosedError(f"the runner of {self._spec.id} is closed; build a new one")
        async with self._place():
            member = Member(self._build, task, self._seed, Autoreset.DISABLED, self._spec.id)
            thread = ThreadPoolExecutor(1, thread_name_prefix="gem-episode")
            try:
                return await self._play(member, task, thread)
            finally:
                # The thread takes this after the call under way, even if nobody waits for it any more.
                closing = thread.submit(member.close)
                thread.shutdown(wait=False)
                await asyncio.shield(asyncio.wrap_future(closing))

    async def run_all(self, tasks: Sequence[int]) -> list[Episode]:
        """Play one episode of each task concurrently; those that were dropped are missing. Raises as `run`."""
        running = [asyncio.ensure_future(self.run(task)) for task in tasks]
        try:
            episodes = await asyncio.gather(*running)
        except BaseException:
            for one in running:
                one.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            raise
        return [episode for episode in episodes if episode is not None]

    def close(self, error: BaseException | None = None) -> None:
        """End the run; episodes under way play on. Safe to call twice."""
        self._closed = True
        self._session.close(error)

    def _place(self) -> asyncio.Semaphore:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # a semaphore serves one loop; a trainer may start one per batch
            self._loop, self._places = loop, asyncio.Semaphore(self._max_concurrent)
        return self._places

    async def _play(self, member: Member, task: int, thread: ThreadPoolExecutor) -> Episode | None:
        observation, info = await _blocking(thread, member.reset)
        episode = Episode(
            env_id=self._spec.id,
            seed=info["seed"],
            slot=task,
            group=task,
            turns=[],
            provenance=self._session.origin(self._spec.id),
            run=self._session.run.id,
        )
        builder = EpisodeBuilder(episode, self._template, self._settings, observation, info)
        while not builder.over:
            completion = await self._policy(builder.prompt)
            action = builder.act(completion)
            builder.record(await _blocking(thread, partial(member.step, action)))
        return episode if self._session.keep(episode) else None


async def _blocking(thread: ThreadPoolExecutor, call: Callable[[], _T]) -> _T:
    return await asyncio.get_running_loop().run_in_executor(thread, call)
