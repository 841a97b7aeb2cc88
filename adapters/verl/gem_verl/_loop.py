"""The agent loop: one coroutine per episode."""

from __future__ import annotations

import traceback
from typing import Any

from verl.experimental.agent_loop.agent_loop import (
    AgentLoopBase,
    AgentLoopMetrics,
    AgentLoopOutput,
    DictConfigWrap,
    register,
)
from verl.workers.rollout.llm_server import LLMServerClient

from gem_core.errors import GemError
from gem_core.vector import Task
from gem_train.results import EpisodeResult
from gem_verl._images import reader_of
from gem_verl._policy import ServerPolicy
from gem_verl._rows import episode_rows, report_row
from gem_verl._runner import ends_of, shared_runner
from gem_verl.checks import updates_per_batch

NAME = "gem"


@register(NAME)
class EnvironmentLoop(AgentLoopBase):
    """Plays one episode of the task in a row of `EnvTasks`; verl creates one loop per episode.

    An exception here would not stop verl, which would train on the other episodes. So a row carries a fatal error, and
    the trainer raises it.
    """

    def __init__(
        self,
        trainer_config: DictConfigWrap,
        server_manager: LLMServerClient,
        tokenizer: Any,
        processor: Any,
        **kwargs: Any,
    ) -> None:
        # The base constructor is skipped: it prepares verl's multi-turn tokenization, which refuses some tokenizers and
        # is not needed, because `gem_core` keeps the token ids.
        self.config = trainer_config.config
        self._client = server_manager
        self._tokenizer = tokenizer
        self._images = reader_of(processor)

    # verl accepts a list as well, although its signature does not show it.
    async def run(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, sampling_params: dict[str, Any], **row: Any
    ) -> list[AgentLoopOutput]:
        """The rows of one episode; at least one in all cases."""
        # A row without sampled tokens gets the newest version of weights, so that verl does not treat it as stale.
        version = int(row["global_steps"]) - 1
        try:
            return await self._play(sampling_params, row, version)
        except Exception as error:
            return [report_row(EpisodeResult(fatal=_reason(error)), _versions([version]))]

    async def _play(self, sampling: dict[str, Any], row: dict[str, Any], version: int) -> list[AgentLoopOutput]:
        runner = await shared_runner(self.config, row["split"], self._tokenizer, self._images)
        rollout = self.config.actor_rollout_ref.rollout
        policy = ServerPolicy(
            self._client,
            sampling,
            max_tokens=self.config.gem.max_response_tokens,
            ends=ends_of(runner.template, self._tokenizer, self.config.actor_rollout_ref.model.path),
            episode=f"{row['split']}-{row['task_id']}-{row['session_id']}-{version}",
            updates=updates_per_batch(self.config),
            seed=rollout.seed if rollout.full_determinism else None,
            never=() if self._images is None else self._images.reserved,
        )
        episodes = await runner.play(policy, Task(int(row["task_id"]), row["env_id"], int(row["data_index"])))
        if not any(episode.turns for episode in episodes):
            return [report_row(EpisodeResult.of_all(episodes), _versions([version]))]
        metrics = AgentLoopMetrics(generate_sequences=policy.seconds)
        return episode_rows(episodes, self.config.gem.row, _versions(policy.versions), metrics)


def _reason(error: Exception) -> str:
    # Errors of gem-core explain themselves; other errors need their traceback.
    trace = "" if isinstance(error, GemError) else "\n" + "".join(traceback.format_exception(error))
    return f"{type(error).__name__}: {error}{trace}"


def _versions(versions: list[int]) -> dict[str, int]:
    """The oldest and newest version of weights, under verl's names."""
    return {"min_global_steps": min(versions), "max_global_steps": max(versions)}
