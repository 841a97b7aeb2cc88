"""Rollouts one coroutine per episode, for frameworks whose engine is asynchronous."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gem_core.env import Env
from gem_core.episode import Episode, StopReason
from gem_core.errors import ClosedError
from gem_core.failures import ErrorAction, FailurePolicy
from gem_core.rollout.builder import EpisodeBuilder
from gem_core.rollout.policy import AsyncPolicy
from gem_core.rollout.session import Session
from gem_core.rollout.settings import RolloutSettings
from gem_core.rollout.template import Tokenizer
from gem_core.seeding import derive_seed
from gem_core.vector import Autoreset, Backend, Fault, Task, make_vec
from gem_core.vector.asynchronous import AsyncVectorEnv


class EpisodeRunner:
    """Plays episodes concurrently on a vector of environments; nothing ever blocks the event loop.

    Args:
        env_ids: the environment, several, or `{id: weight}`; weights share out the environments, while whoever calls
            `run` says which one plays.
        tokenizer: of the policy; with a chat template.
        settings: how episodes become prompts.
        seed: task `n` has the seed `derive_seed(seed, n)`, as in every vector with that seed.
        max_concurrent: so many episodes at once, each in an environment of its own; further ones wait.
        backend, workers, failures, env_kwargs, wrappers: as for `make_vec`.

    Raises:
        ValueError: `max_concurrent` below 1, or too few for all environments.
        NotFoundError, DuplicateIdError, EnvKwargsError, MissingExtraError, EnvError: as `make_vec`.
        TemplateError: the tokenizer cannot carry a conversation.
    """

    def __init__(
        self,
        env_ids: str | Sequence[str] | Mapping[str, float],
        tokenizer: Tokenizer,
        settings: RolloutSettings,
        *,
        seed: int,
        max_concurrent: int = 64,
        backend: Backend = "thread",
        workers: int | None = None,
        failures: FailurePolicy | None = None,
        env_kwargs: Mapping[str, Any] | None = None,
        wrappers: Sequence[Callable[[Env], Env]] = (),
    ) -> None:
        if max_concurrent < 1:
            raise ValueError(f"max_concurrent must be at least 1, not {max_concurrent}")
        self._settings = settings
        self._template = settings.template(tokenizer)
        self._seed = seed
        self._vec = make_vec(
            env_ids,
            max_concurrent,
            backend=backend,
            autoreset=Autoreset.DISABLED,
            seed=seed,
            wrappers=wrappers,
            env_kwargs=env_kwargs,
            workers=workers,
            failures=failures,
        )
        self._vec.on_failure = self._judge
        self._exchange = AsyncVectorEnv(self._vec)
        self._free: dict[str, list[int]] = {}
        for place, env_id in enumerate(self._vec.env_ids):
            self._free.setdefault(env_id, []).append(place)
        self._live: dict[int, Episode] = {}
        self._dropped: set[int] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._places: dict[str, asyncio.Semaphore] = {}
        self._closed = False
        self._session = Session([*self._free], settings)

    async def run(
        self, policy: AsyncPolicy, task: int, env_id: str | None = None, *, row: int | None = None
    ) -> Episode | None:
        """Play one episode of a task. Cancelling it waits for the call under way.

        Args:
            policy: samples the completion of one prompt; each episode may have its own.
            task: decides the seed; episodes of one task form a group.
            env_id: which of the environments; may be left out where there is one.
            row: what an environment over data is told as its task, where several share the tasks and each is to go
                through all of its data; by default `task`.

        Returns:
            The episode, or `None` where its environment failed and it is to be dropped.

        Raises:
            ValueError: no such environment here, or several and none named.
            PolicyError: the policy broke its contract. What the policy itself raises passes through.
            EnvFailure: a failure that is to stop the run; see `FailurePolicy`.
            ClosedError: the runner is closed.
            RuntimeError: another event loop plays with it at the same time.
        """
        if self._closed:
            raise ClosedError(f"the runner of {', '.join(self._free)} is closed; build a new one")
        chosen = self._choose(env_id)
        async with self._semaphore(chosen):
            place = self._free[chosen].pop()
            try:
                return await self._play(policy, task, chosen, place, task if row is None else row)
            finally:
                self._live.pop(place, None)
                self._dropped.discard(place)
                self._free[chosen].append(place)

    async def run_all(self, policy: AsyncPolicy, tasks: Sequence[int], env_id: str | None = None) -> list[Episode]:
        """Play one episode of each task concurrently; those that were dropped are missing. Raises as `run`."""
        running = [asyncio.ensure_future(self.run(policy, task, env_id)) for task in tasks]
        try:
            episodes = await asyncio.gather(*running)
        except BaseException:
            for one in running:
                one.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            raise
        return [episode for episode in episodes if episode is not None]

    def close(self, error: BaseException | None = None) -> None:
        """End the run and close the environments; episodes under way raise `ClosedError`. Safe to call twice.

        Waits for the environments' own `close()`, a few seconds at most.
        """
        if not self._closed:
            self._closed = True
            self._exchange.close()
            self._session.close(error)

    def _choose(self, env_id: str | None) -> str:
        if env_id is None and len(self._free) == 1:
            return next(iter(self._free))
        if env_id is None or env_id not in self._free:
            raise ValueError(f"env_id={env_id!r}, but this runner plays {', '.join(self._free)}; name one of them")
        return env_id

    def _semaphore(self, env_id: str) -> asyncio.Semaphore:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # a semaphore serves one loop; a trainer may start one per batch
            if self._loop is not None and self._loop.is_running():
                raise RuntimeError(
                    f"the runner of {', '.join(self._free)} is at work in another event loop; build one per loop"
                )
            self._loop = loop
            self._places = {one: asyncio.Semaphore(len(places)) for one, places in self._free.items()}
        return self._places[env_id]

    async def _play(self, policy: AsyncPolicy, task: int, env_id: str, place: int, row: int) -> Episode | None:
        episode = self._live[place] = Episode(
            env_id=env_id,
            seed=derive_seed(self._seed, task),
            slot=task,
            group=task,
            turns=[],
            provenance=self._session.origin(env_id),
            run=self._session.run.id,
        )
        opening = await self._exchange.reset(place, Task(task, env_id, row))
        builder = EpisodeBuilder(episode, self._template, self._settings, opening.observation, opening.info)
        while not builder.over:
            completion = await policy(builder.prompt)
            builder.record(await self._exchange.step(place, builder.act(completion)))
        self._session.end(episode)
        if episode.stop_reason is StopReason.ENV_ERROR and self._exchange.error is not None:
            raise self._exchange.error
        return None if place in self._dropped else episode

    def _judge(self, fault: Fault) -> ErrorAction:
        action = self._session.judge(self._vec.failures, self._live[fault.slot], fault)
        if action is ErrorAction.DROP:
            self._dropped.add(fault.slot)
        return action
