"""The runners of an engine's process, which all its episodes share."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
from typing import Any

from gem_core.plugins import manager
from gem_core.rollout import EpisodeRunner
from gem_core.training.playing import build_runner
from gem_openrlhf.tasks import TaskLabel


class SharedRunners:
    """The runners of one engine: one for training, one for evaluation, each built on first use."""

    def __init__(self) -> None:
        self._runners: dict[str, asyncio.Future[EpisodeRunner]] = {}

    async def runner(self, label: TaskLabel, tokenizer: Any, response_tokens: int, context: int) -> EpisodeRunner:
        """The runner that plays the task of a label.

        Args:
            label: says whether the task is for training or for evaluation, and has the settings.
            tokenizer: the policy's.
            response_tokens: limit of one response.
            context: limit of a prompt and its response.

        Raises:
            NotFoundError, EnvKwargsError, MissingExtraError, EnvError, SettingsError: as `gem_core.make_vec`.
            TemplateError: the tokenizer cannot carry a conversation.
        """
        if not self._runners:
            manager.configure(dataclasses.asdict(label.settings))
        if label.split not in self._runners:
            # Building environments may take a while, and blocks.
            loop = asyncio.get_running_loop()
            build = functools.partial(_build, label, tokenizer, response_tokens, context)
            self._runners[label.split] = loop.run_in_executor(None, build)
        return await asyncio.shield(self._runners[label.split])

    def close(self) -> None:
        """Close the environments. Safe to call twice."""
        for built in self._runners.values():
            if built.done() and not built.cancelled() and built.exception() is None:
                built.result().close()
        self._runners.clear()


def _build(label: TaskLabel, tokenizer: Any, response_tokens: int, context: int) -> EpisodeRunner:
    rollout = label.settings.rollout(response_tokens, context)
    return build_runner(label.settings, label.split, tokenizer, rollout, label.max_concurrent)
