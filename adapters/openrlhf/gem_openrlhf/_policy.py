"""OpenRLHF's inference engine as a policy."""

from __future__ import annotations

from collections.abc import Callable, Collection
from copy import copy
from typing import Any

from gem_core.episode import Completion, TokenIds
from gem_openrlhf._images import media
from gem_train.images import bias_against
from gem_train.rollout import images_in


class EnginePolicy:
    """Samples the turns of an episode, token ids in and token ids out.

    Args:
        engine: OpenRLHF's engine; the episode is played in its process.
        sampling: OpenRLHF's sampling parameters, which all episodes share.
        version: returns the version of the engine's weights.
        ends: token ids that end a turn, besides those that vLLM finds in the model's generation configuration.
        never: token ids that are never sampled, such as one that stands for an image.
    """

    def __init__(
        self,
        engine: Any,
        sampling: Any,
        version: Callable[[], int],
        *,
        ends: Collection[int],
        never: Collection[int] = (),
    ) -> None:
        self._engine = engine
        self._version = version
        self._sampling = copy(sampling)
        # OpenRLHF forbids an end of turn as the first token, but trains with probabilities that ignore this rule.
        self._sampling.min_tokens = 0
        self._sampling.stop_token_ids = [*ends]
        if never:
            self._sampling.logit_bias = bias_against(never)

    async def __call__(self, prompt: TokenIds) -> Completion:
        """The completion of one prompt. If the weights change meanwhile, its version is the older one."""
        version = self._version()
        output = (await self._engine.generate(prompt.tolist(), self._sampling, **media(images_in(prompt)))).outputs[0]
        ids = list(output.token_ids)
        logprobs = None
        if output.logprobs is not None:
            logprobs = [float(choices[token].logprob) for token, choices in zip(ids, output.logprobs, strict=True)]
        return Completion(ids, logprobs, output.finish_reason == "length", version)
