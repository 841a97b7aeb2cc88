"""The agent that OpenRLHF's engines load. It imports no training code, which would interfere with vLLM."""

from __future__ import annotations

from typing import Any

from openrlhf.utils.agent import AgentExecutorBase

from gem_openrlhf.policy import EnginePolicy
from gem_openrlhf.rows import EpisodeRows, response
from gem_openrlhf.runner import SharedRunners
from gem_openrlhf.tasks import TaskLabel


class GemAgentExecutor(AgentExecutorBase):
    """Plays environments, one coroutine per episode; OpenRLHF makes one of these per engine.

    OpenRLHF takes the class `AgentExecutor` from the file that it is given, so derive a class of that name. The same
    file may register environments, as every engine imports it:

        class AgentExecutor(GemAgentExecutor):
            pass
    """

    def __init__(self) -> None:
        self._runners = SharedRunners()

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
            prompt: the task's name.
            label: the task.
            sampling_params: OpenRLHF's; `max_tokens` limits one response.
            max_length: tokens of a prompt and its response.
            hf_tokenizer: the policy's.
            llm_engine: samples.
            images: none.

        Raises:
            SettingsError: the label is not a task.
            EnvFailure: a failure that must stop the run; see `FailurePolicy`.
            NotFoundError, EnvKwargsError, MissingExtraError, EnvError, TemplateError: as `EpisodeRunner`.
        """
        decoded = TaskLabel.decode(label)
        runner = await self._runners.runner(decoded, hf_tokenizer, sampling_params.max_tokens, max_length)
        policy = EnginePolicy(llm_engine, sampling_params)
        episode = await runner.run(policy, decoded.task)
        return response(prompt, label, EpisodeRows.of(episode, decoded.settings.row))
