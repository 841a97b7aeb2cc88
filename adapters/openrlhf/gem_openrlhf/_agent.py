"""The agent that OpenRLHF's engines load. It imports no training code, which would interfere with vLLM."""

from __future__ import annotations

import functools
from typing import Any

from openrlhf.utils.agent import AgentExecutorBase

from gem_openrlhf._images import plain_tokenizer
from gem_openrlhf._policy import EnginePolicy
from gem_openrlhf._rows import EpisodeRows, response
from gem_openrlhf._tasks import TaskLabel
from gem_train.playing import build_runner
from gem_train.rollout import EpisodeRunner, end_token_ids
from gem_train.shared_runners import SharedRunners


class GemAgentExecutor(AgentExecutorBase):
    """Plays environments, one coroutine per episode; OpenRLHF creates one executor per engine.

    OpenRLHF loads the class `AgentExecutor` from a file, so derive a class of that name. The same file may register
    environments, because every engine imports it:

        class AgentExecutor(GemAgentExecutor):
            pass
    """

    def __init__(self) -> None:
        self._runners = SharedRunners()
        self.version = 0
        """The version of the engine's weights, which the trainer sets after it has sent new ones."""

    def close(self) -> None:
        """Close the environments; a later episode builds them again."""
        self._runners.close()

    async def execute(
        self,
        prompt: str,
        label: str,
        sampling_params: Any,
        max_length: int,
        hf_tokenizer: Any,
        llm_engine: Any,
        images: Any = None,
    ) -> dict[str, Any]:
        """One episode, as OpenRLHF expects a sample.

        Args:
            prompt: name of the task.
            label: the task.
            sampling_params: OpenRLHF's sampling parameters; `max_tokens` limits one response.
            max_length: token limit of a prompt and its response.
            hf_tokenizer: the tokenizer of the policy, or its processor with tokenizer and image processor.
            llm_engine: the engine that samples.
            images: not used; images come from environments.

        Raises:
            SettingsError: the label is not a task.
            EnvFailure: a failure that must stop the run; see `FailurePolicy`.
            NotFoundError, EnvKwargsError, MissingExtraError, EnvError, TemplateError: as `EpisodeRunner`.
        """
        decoded = TaskLabel.decode(label)
        build = functools.partial(_build, decoded, hf_tokenizer, sampling_params.max_tokens, max_length)
        runner = await self._runners.runner(decoded.split, build)
        never = decoded.images.reserved if decoded.images else ()
        ends = end_token_ids(runner.template, plain_tokenizer(hf_tokenizer))
        policy = EnginePolicy(llm_engine, sampling_params, lambda: self.version, ends=ends, never=never)
        episodes = await runner.play(policy, decoded.task)
        return response(prompt, label, EpisodeRows.played(episodes, decoded.settings.row))


def _build(label: TaskLabel, processor: Any, response_tokens: int, context: int) -> EpisodeRunner:
    rollout = label.settings.rollout(response_tokens, context)
    reader = label.images.reader(processor) if label.images else None
    tokenizer = plain_tokenizer(processor)
    wrappers = [label.images.limit(label.settings.history)] if label.images and reader else []
    return build_runner(label.settings, label.split, tokenizer, rollout, label.max_concurrent, reader, wrappers)
