"""Plays the episodes of an evaluation."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, TypeAlias

import msgspec

from gem_core.env import Info
from gem_core.episode import Episode, StopReason
from gem_core.failures import FailurePolicy
from gem_evaluation._conversation import ConversationSettings, MessageBuilder, Prompt, Usage
from gem_evaluation._errors import EvaluationError, ModelError
from gem_evaluation._local import LocalModel
from gem_evaluation._models import Model
from gem_evaluation._records import EvaluatedEpisode, FailedEpisode, Fault, Key
from gem_evaluation._settings import Entry
from gem_evaluation._store import Store
from gem_train.rollout import BaseEpisodeBuilder, BaseEpisodeRunner

MAX_FAILURES_IN_A_ROW = 20
"""Episodes without a response of the model, one after another, after which an evaluation stops."""

Responder: TypeAlias = Callable[[Any], Awaitable[Any]]
"""Answers the prompts of a builder."""


class EntryRunner(BaseEpisodeRunner[Responder]):
    """Plays episodes of one entry.

    Args:
        entry: what is played.
        seed, max_concurrent, failures: as for `BaseEpisodeRunner`.
        model: who plays. Local weights get tokens, all others messages.
    """

    def __init__(
        self,
        entry: Entry,
        seed: int,
        max_concurrent: int,
        model: Model | None = None,
        failures: FailurePolicy | None = None,
    ) -> None:
        self._conversation: ConversationSettings = entry.conversation
        self._model = model
        self.openings: dict[int, str] = {}
        """Of each episode under way, by its number: a hash of the first prompt in messages."""
        super().__init__(
            entry.id,
            {"conversation": entry.conversation},
            seed=seed,
            max_concurrent=max_concurrent,
            env_kwargs=entry.env_kwargs,
            wrappers=[*entry.wrappers(), *(() if model is None else model.wrappers)],
            failures=failures,
        )

    def _builder(self, episode: Episode, observation: str, info: Info) -> BaseEpisodeBuilder:
        if isinstance(self._model, LocalModel):
            asked = MessageBuilder(msgspec.structs.replace(episode, images=[]), self._conversation, observation, info)
            builder = self._model.builder(episode, self._conversation, observation, info)
        else:
            asked = builder = MessageBuilder(episode, self._conversation, observation, info)
        self.openings.setdefault(episode.number, _hash(asked.prompt))
        return builder


class UsageTracker:
    """Asks a model for one episode, and keeps what that took."""

    def __init__(self, model: Model, key: Key) -> None:
        self._model = model
        self._episode = f"{key.entry} task {key.task_id} repeat {key.repeat}"
        self.usage: list[Usage] = []

    async def __call__(self, prompt: Any) -> Any:
        if isinstance(self._model, LocalModel):
            completion, usage = await self._model.complete(prompt)
            self.usage.append(usage)
            return completion
        reply = await self._model.respond(prompt, self._episode)
        self.usage.append(reply.usage)
        return reply


class Evaluation:
    """Plays what is left of an evaluation, many episodes at a time.

    Args:
        entries: what is played.
        counts: tasks of each entry, by label.
        model: who plays.
        store: where finished episodes go.
        seed: of the tasks.
        retry_failed: play episodes again that failed before.
        show: called with each finished episode.
    """

    def __init__(
        self,
        entries: Sequence[Entry],
        counts: dict[str, int],
        model: Model,
        store: Store,
        seed: int,
        retry_failed: bool = False,
        show: Callable[[Episode], None] = lambda _: None,
    ) -> None:
        self._show = show
        self._entries = {entry.label: entry for entry in entries}
        self._counts = counts
        self._model = model
        self._store = store
        self._seed = seed
        self._runners: dict[str, EntryRunner] = {}
        self._failed_in_a_row = 0
        self.left = [
            key for key in self._all() if key not in store.finished and (retry_failed or key not in store.failures)
        ]
        """Episodes that are not played yet."""

    def _all(self) -> Iterator[Key]:
        # Repeats come last, so that an interrupted evaluation has seen as many tasks as possible.
        for repeat in range(max(entry.repeats for entry in self._entries.values())):
            for label, entry in self._entries.items():
                if repeat < entry.repeats:
                    yield from (Key(label, task_id, repeat) for task_id in range(self._counts[label]))

    async def play(self) -> None:
        """Play all that is left. The model is open.

        Raises:
            ModelSetupError: no request to the model can succeed.
            EvaluationError: nothing can be written, or the model fails again and again.
            EnvFailure: an environment fails again and again.
        """
        if not self.left:
            return
        waiting = iter(self.left)
        with ExitStack() as stack:
            players = min(self._model.most_at_once, len(self.left))
            per_entry = Counter(key.entry for key in self.left)
            for label, count in per_entry.items():
                runner = EntryRunner(self._entries[label], self._seed, min(players, count), self._model)
                stack.callback(runner.close)
                self._runners[label] = runner
            running = [asyncio.ensure_future(self._play_from(waiting)) for _ in range(players)]
            try:
                # Not `gather`: where it is cancelled, it waits for all.
                ended, _ = await asyncio.wait(running, return_when=asyncio.FIRST_EXCEPTION)
                for one in ended:
                    one.result()
            finally:
                for one in running:
                    one.cancel()
                stack.close()  # a cancelled episode waits for its environment, which may hang
                await asyncio.gather(*running, return_exceptions=True)

    async def _play_from(self, waiting: Iterator[Key]) -> None:
        for key in waiting:
            await self._play(key)

    async def _play(self, key: Key) -> None:
        asker, began = UsageTracker(self._model, key), time.monotonic()
        runner = self._runners[key.entry]
        try:
            episode = await runner.run(asker, key.task_id)
        except ModelError as error:
            self._fail(key, "endpoint", str(error), len(asker.usage))
            return
        assert episode is not None
        if episode.stop_reason is StopReason.ENV_ERROR:
            self._fail(key, "environment", episode.error or "", len(episode.turns))
            return
        self._failed_in_a_row = 0
        cost = sum(map(self._model.cost, asker.usage))
        opening = runner.openings.pop(episode.number)
        self._store.add(EvaluatedEpisode(key, episode, asker.usage, cost, time.monotonic() - began, opening))
        self._show(episode)

    def _fail(self, key: Key, fault: Fault, error: str, turns: int) -> None:
        self._store.fail(FailedEpisode(key, fault, error, turns))
        if fault == "endpoint":
            self._failed_in_a_row += 1
            if self._failed_in_a_row >= MAX_FAILURES_IN_A_ROW:
                raise EvaluationError(
                    f"the model failed in {MAX_FAILURES_IN_A_ROW} episodes in a row, the last time with: {error}. Run "
                    "the same command with --retry-failed once it answers"
                )


def _hash(prompt: Prompt) -> str:
    # As ASCII: a message may have half a character, which UTF-8 has not.
    return hashlib.sha256(json.dumps(msgspec.to_builtins(prompt)).encode()).hexdigest()[:16]
