"""Rollouts one coroutine per episode, for frameworks whose engine is asynchronous."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import operator
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar, cast

from gem_core.env import Env, Info
from gem_core.episode import Episode, StopReason
from gem_core.errors import ClosedError, EnvError, EnvFailure
from gem_core.failures import ErrorAction, FailurePolicy
from gem_core.plugins import manager
from gem_core.seeding import derive_seed
from gem_core.vector import Autoreset, EnvIds, Task, is_whole_number, make_vec
from gem_train.rollout._asynchronous import AsyncVectorEnv
from gem_train.rollout._builder import BaseEpisodeBuilder, EpisodeBuilder
from gem_train.rollout._images import ImageReader
from gem_train.rollout._match import builder_of
from gem_train.rollout._metrics import episode_metrics
from gem_train.rollout._policy import AsyncPolicy
from gem_train.rollout._reporter import Reporter
from gem_train.rollout._session import RolloutSession
from gem_train.rollout._settings import Cutoff, RolloutSettings
from gem_train.rollout._template import Tokenizer

AnyPolicy = TypeVar("AnyPolicy", bound=Callable[[Any], Awaitable[Any]])


class BaseEpisodeRunner(ABC, Generic[AnyPolicy]):
    """Plays episodes concurrently on a vector of environments; nothing ever blocks the event loop.

    A subclass says how observations become prompts: `_builder`.

    Args:
        env_ids: the environment, several, or `{id: weight}`; weights decide how many environments each id has; the
            task decides which id plays.
        settings: recorded with the run.
        seed: task `n` has the seed `derive_seed(seed, n)`, as in every vector with that seed.
        max_concurrent: episodes at a time, each in an environment of its own; further ones wait.
        backend, workers, failures, env_kwargs, wrappers: as for `make_vec`.
        env_limits: `{id: episodes}`: how many episodes of an id are under way at once; further ones wait in the order
            in which they were asked for. There are no more environments of that id.
        label: what the rollout is for, such as `train` or `eval`; recorded with the run.
        track: plugins that track each call of `run_all`, such as `wandb`.

    Raises:
        ValueError: `max_concurrent` below 1, or too few for all environments.
        PluginError: no plugin has a name in `track`.
        NotFoundError, DuplicateIdError, EnvKwargsError, MissingExtraError, EnvError: as `make_vec`.
    """

    match_cutoff: Cutoff = "forfeit"
    """The handling of a match that a limit cuts off; see `RolloutSettings`."""

    def __init__(
        self,
        env_ids: EnvIds,
        settings: Mapping[str, Any],
        *,
        seed: int,
        max_concurrent: int = 64,
        backend: str = "thread",
        workers: int | None = None,
        failures: FailurePolicy | None = None,
        env_kwargs: Mapping[str, Any] | None = None,
        env_limits: Mapping[str, int] | None = None,
        wrappers: Sequence[Callable[[Env], Env]] = (),
        label: str = "",
        track: Sequence[str] = (),
    ) -> None:
        manager.require(*track)
        if max_concurrent < 1:
            raise ValueError(f"max_concurrent must be at least 1, not {max_concurrent}")
        self._seed = seed
        self._vec = make_vec(
            env_ids,
            max_concurrent,
            backend=backend,
            autoreset=Autoreset.DISABLED,
            seed=seed,
            wrappers=wrappers,
            env_kwargs=env_kwargs,
            env_limits=env_limits,
            workers=workers,
            failures=failures,
        )
        self._vec.on_failure = self._on_failure
        self._envs = AsyncVectorEnv(self._vec)
        self._free: dict[str, list[int]] = {}
        for slot, env_id in enumerate(self._vec.env_ids):
            self._free.setdefault(env_id, []).append(slot)
        for env_id, limit in (env_limits or {}).items():
            del self._free[env_id][limit:]
        self._live: dict[int, Episode] = {}
        self._dropped: set[int] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._slots: dict[str, asyncio.Semaphore] = {}
        self._closed = False
        self._numbers = itertools.count()
        self._session = RolloutSession([*self._free], settings, label)
        self._reporter = Reporter.of_rollout(self._session.run, track)
        self._rounds = 0

    @abstractmethod
    def _builder(self, episode: Episode, observation: str, info: Info) -> BaseEpisodeBuilder:
        """A builder of an episode that starts with this observation."""

    async def run(self, policy: AnyPolicy, task: Task | int, partner_replies: Sequence[str] = ()) -> Episode | None:
        """Play one episode of a task, as `play` does.

        Returns:
            The episode, or `None` where its environment failed and the failure policy drops it.

        Raises:
            EnvError: several agents played; see `play`.
            ValueError, PolicyError, EnvFailure, ClosedError, RuntimeError: as `play`.
        """
        episodes = await self.play(policy, task, partner_replies)
        if len(episodes) > 1:
            agents = ", ".join(episode.agent for episode in episodes)
            raise EnvError(
                f"{episodes[0].env_id} has an episode for each of {agents}, but run() gives one. Use play(), or "
                "opponents={...} for all agents but one."
            )
        return episodes[0] if episodes else None

    async def play(self, policy: AnyPolicy, task: Task | int, partner_replies: Sequence[str] = ()) -> list[Episode]:
        """Play a task once. Cancelling it waits for the call under way.

        Args:
            policy: answers one prompt; each episode may have its own.
            task: what to play, for example an entry of a `TaskTable`; a number is enough where there is one
                environment. Episodes of one task form a group.
            partner_replies: what partners answered when this task was played before; see `gem_core.partner`.

        Returns:
            The episode; of a match, one for each agent that was asked. Nothing where the environment failed and the
            failure policy drops the episode.

        Raises:
            ValueError: no such environment here, or a number where there are several.
            PolicyError: the policy broke its contract. What the policy itself raises passes through.
            EnvFailure: a failure that stops the run; see `FailurePolicy`.
            ClosedError: the runner is closed.
            RuntimeError: another event loop plays with it at the same time.
        """
        if self._closed:
            raise ClosedError(f"the runner of {', '.join(self._free)} is closed; build a new one")
        chosen = self._task(task)
        async with self._semaphore(chosen.env_id):
            slot = self._free[chosen.env_id].pop()
            try:
                return await self._play(policy, chosen, slot, partner_replies)
            finally:
                self._live.pop(slot, None)
                self._dropped.discard(slot)
                self._free[chosen.env_id].append(slot)

    async def run_all(self, policy: AnyPolicy, tasks: Sequence[Task | int]) -> list[Episode]:
        """Play each task once, concurrently, and report their metrics; see `gem_metrics`.

        Raises as `play`.

        Returns:
            The episodes in the order of the tasks, of a match those of all agents; those that were dropped are missing.
        """
        running = [asyncio.ensure_future(self.play(policy, task)) for task in tasks]
        try:
            played = await asyncio.gather(*running)
        except BaseException:
            for one in running:
                one.cancel()
            await asyncio.gather(*running, return_exceptions=True)
            raise
        kept = [episode for episodes in played for episode in episodes]
        self._rounds += 1
        if self._reporter.has_listeners:
            metrics = episode_metrics([episode.summary() for episode in kept], sum(not one for one in played))
            self._reporter.report(self._rounds, metrics, kept)
        return kept

    def close(self, error: BaseException | None = None) -> None:
        """End the run and close the environments; episodes under way raise `ClosedError`. Safe to call twice.

        Waits for the environments' own `close()`, a few seconds at most.
        """
        if not self._closed:
            self._closed = True
            self._envs.close()
            self._reporter.close()
            self._session.close(error)

    def _task(self, task: Task | int) -> Task:
        if is_whole_number(task) and len(self._free) == 1:
            number = operator.index(cast("int", task))
            task = Task(number, next(iter(self._free)), number)
        if not isinstance(task, Task) or task.env_id not in self._free or task.task_id < 0:
            raise ValueError(
                f"this runner plays {', '.join(self._free)}, not {task!r}; pass a Task with one of these ids and a "
                "number from 0"
            )
        return task

    def _semaphore(self, env_id: str) -> asyncio.Semaphore:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # a semaphore serves one loop; a trainer may start one per batch
            if self._loop is not None and self._loop.is_running():
                raise RuntimeError(
                    f"the runner of {', '.join(self._free)} is at work in another event loop; build one per loop"
                )
            self._loop = loop
            self._slots = {one: asyncio.Semaphore(len(slots)) for one, slots in self._free.items()}
        return self._slots[env_id]

    async def _play(self, policy: AnyPolicy, task: Task, slot: int, partner_replies: Sequence[str]) -> list[Episode]:
        episode = self._live[slot] = Episode(
            env_id=task.env_id,
            seed=derive_seed(self._seed, task.task_id),
            slot=task.task_id,
            number=next(self._numbers),
            task_id=task.task_id,
            turns=[],
            provenance=self._session.origin(task.env_id),
            run=self._session.run.id,
        )
        opening = await self._envs.reset(slot, task, partner_replies)
        builder = builder_of(episode, self._builder, opening.observation, opening.info, self.match_cutoff)
        while not builder.over:
            self._live[slot] = builder.episode
            action = builder.action
            if action is None:
                action = builder.act(await policy(builder.prompt))
            if action is not None:
                builder.record(await self._envs.step(slot, action))
        self._session.end(builder.episodes, cut_off=builder.dropped)
        if builder.episode.stop_reason is StopReason.ENV_ERROR and self._envs.error is not None:
            raise self._envs.error
        return [] if builder.dropped or slot in self._dropped else builder.episodes

    def _on_failure(self, failure: EnvFailure) -> ErrorAction:
        action = self._session.on_failure(self._vec.failures, self._live[failure.slot], failure)
        if action is ErrorAction.DROP:
            self._dropped.add(failure.slot)
        return action


class EpisodeRunner(BaseEpisodeRunner[AsyncPolicy]):
    """A runner whose policy gets and gives token ids.

    Args:
        env_ids, seed, max_concurrent, backend, workers, failures, env_kwargs, env_limits, wrappers, label, track: as
            for `BaseEpisodeRunner`.
        tokenizer: of the policy; with a chat template.
        settings: how episodes become prompts.
        images: reads images for the model; `None` for a model that reads text only.

    Raises:
        ValueError, NotFoundError, DuplicateIdError, EnvKwargsError, MissingExtraError, EnvError: as
            `BaseEpisodeRunner`.
        TemplateError: the tokenizer cannot carry a conversation.
    """

    def __init__(
        self,
        env_ids: EnvIds,
        tokenizer: Tokenizer,
        settings: RolloutSettings,
        *,
        seed: int,
        max_concurrent: int = 64,
        backend: str = "thread",
        workers: int | None = None,
        failures: FailurePolicy | None = None,
        env_kwargs: Mapping[str, Any] | None = None,
        env_limits: Mapping[str, int] | None = None,
        wrappers: Sequence[Callable[[Env], Env]] = (),
        label: str = "",
        track: Sequence[str] = (),
        images: ImageReader | None = None,
    ) -> None:
        self._settings = settings
        self.match_cutoff = settings.match_cutoff
        self.template = settings.template(tokenizer, images)
        """Of the conversations."""
        super().__init__(
            env_ids,
            dataclasses.asdict(settings),
            seed=seed,
            max_concurrent=max_concurrent,
            backend=backend,
            workers=workers,
            failures=failures,
            env_kwargs=env_kwargs,
            env_limits=env_limits,
            wrappers=wrappers,
            label=label,
            track=track,
        )

    def _builder(self, episode: Episode, observation: str, info: Info) -> EpisodeBuilder:
        return EpisodeBuilder(episode, self.template, self._settings, observation, info)
