"""An actor's engine as a policy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from oat.actors.base import ActorBase

from gem_core.rollout import Completion


class EnginePolicy:
    """Samples with the vLLM engine of an actor, from token ids.

    Args:
        actor: Oat's.
        sampling_params: vLLM's, one response per prompt.
    """

    def __init__(self, actor: ActorBase, sampling_params: Any) -> None:
        self._actor = actor
        self._sampling_params = sampling_params

    def __call__(self, prompts: Sequence[list[int]]) -> list[Completion]:
        """One completion per prompt."""
        ids: Any = [*prompts]
        answers = self._actor.generate(ids, self._sampling_params)
        return [_completion(answer.outputs[0]) for answer in answers]


def _completion(output: Any) -> Completion:
    ids = [*output.token_ids]
    known = output.logprobs
    logprobs = None if known is None else [at[one].logprob for one, at in zip(ids, known, strict=True)]
    return Completion(ids, logprobs, output.finish_reason == "length")
