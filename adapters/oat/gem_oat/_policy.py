"""An actor's engine as a policy."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import Any

from oat.actors.base import ActorBase
from vllm.lora.request import LoRARequest  # pyright: ignore[reportMissingImports]

from gem_core.episode import Completion, TokenIds


class EnginePolicy:
    """Samples with the vLLM engine of an actor, from token ids.

    Args:
        actor: Oat's actor.
        sampling_params: sampling parameters of vLLM, with one response per prompt.
        engine: held while the engine samples.
    """

    def __init__(self, actor: ActorBase, sampling_params: Any, engine: threading.Lock) -> None:
        self._actor = actor
        self._sampling_params = sampling_params
        self._engine = engine
        self.version = 0
        """The version of the engine's weights. Changed by who holds the engine."""

    @property
    def response_tokens(self) -> int:
        """Token limit of a completion."""
        return self._sampling_params.max_tokens

    def __call__(self, prompts: Sequence[TokenIds]) -> list[Completion]:
        """One completion per prompt."""
        # Not with Oat's `generate`, which requires a BOS token; here the chat template decides.
        with self._engine:
            answers: Any = self._actor.llm.generate(
                prompt_token_ids=[prompt.tolist() for prompt in prompts],
                sampling_params=self._sampling_params,
                lora_request=self._lora_request(),
                use_tqdm=False,
            )
            version = self.version
        return [_completion(answer.outputs[0], version) for answer in answers]

    def _lora_request(self) -> LoRARequest | None:
        path = self._actor.lora_path if self._actor.use_lora_req else None
        return LoRARequest(os.path.basename(path), hash(path), path) if path else None


def _completion(output: Any, version: int) -> Completion:
    ids = [*output.token_ids]
    known = output.logprobs
    logprobs = None if known is None else [at[one].logprob for one, at in zip(ids, known, strict=True)]
    return Completion(ids, logprobs, output.finish_reason == "length", version)
