"""The agent that OpenRLHF's engines load; nothing of training is imported here, which would reach into vLLM."""

from __future__ import annotations

from typing import Any

from openrlhf.utils.agent import AgentExecutorBase

from gem_openrlhf.player import Players
from gem_openrlhf.policy import EnginePolicy
from gem_openrlhf.rows import played, response
from gem_openrlhf.tasks import Task


class GemAgentExecutor(AgentExecutorBase):
    """Plays environments, one coroutine per episode; OpenRLHF makes one of these per engine.

    OpenRLHF takes the class `AgentExecutor` of the file that it is given, so derive one of that name. The same file may
    register environments of its own, as every engine imports it:

        class AgentExecutor(GemAgentExecutor):
            pass
    """

    def __init__(self) -> None:
        self._players = Players()

    def close(self) -> None:
        """Close the environments; a later episode builds them again."""
        self._players.close()

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
            SettingsError: the label names no task.
            EnvFailure: a failure that is to stop the run; see `FailurePolicy`.
            NotFoundError, EnvKwargsError, MissingExtraError, EnvError, TemplateError: as `EpisodeRunner`.
        """
        task = Task.decode(label)
        runner = await self._players.runner(task, hf_tokenizer, sampling_params.max_tokens, max_length)
        policy = EnginePolicy(llm_engine, sampling_params)
        episode = await runner.run(policy, task.number, task.env_id, row=task.row)
        return response(prompt, label, played(episode, task.settings.row))
