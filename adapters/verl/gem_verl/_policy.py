"""verl's inference servers as a policy."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping
from typing import Any

from verl.workers.rollout.llm_server import LLMServerClient

from gem_core.episode import TokenIds
from gem_core.seeding import derive_seed
from gem_train.images import bias_against, pil_images
from gem_train.rollout import Completion, images_in

ABORTED = ("aborted", "abort")
"""What servers of verl report if a weight update ended a request."""

RETRY_SECONDS = 0.1
"""How long to wait after a request that was aborted before its first token. Servers hold later requests until they have
the new weights, but an engine may say so by aborting them."""


class ServerPolicy:
    """Samples the turns of one episode, token ids in and token ids out.

    If verl aborts a response for a weight update, the new weights continue it, token for token.

    Args:
        client: verl's client, which sends all turns of an episode to one server, to use its prefix cache.
        sampling: verl's sampling parameters.
        max_tokens: token limit of one response.
        ends: token ids that end a turn. Servers stop at them; if one cannot, what comes after the first is cut off.
        episode: name of the episode.
        updates: updates of the policy in each step of verl, which counts versions of weights by steps.
        seed: seed for engines that take a seed per request; `None` for no seed.
        never: token ids that are never sampled, such as one that stands for an image.
    """

    def __init__(
        self,
        client: LLMServerClient,
        sampling: Mapping[str, Any],
        *,
        max_tokens: int,
        ends: Collection[int],
        episode: str,
        updates: int,
        seed: int | None,
        never: Collection[int] = (),
    ) -> None:
        self._client = client
        biases = {"logit_bias": bias_against(never)} if never else {}
        self._sampling = {**sampling, "max_tokens": max_tokens, "stop_token_ids": [*ends], **biases}
        self._ends = frozenset(ends)
        self._episode = episode
        self._updates = updates
        self._seed = seed
        self._turns = 0
        self.versions: list[int] = []
        """verl's versions of the weights that sampled so far, in order."""
        self.seconds = 0.0
        """Seconds spent on sampling."""

    async def __call__(self, prompt: TokenIds) -> Completion:
        """The completion of one prompt."""
        before, images = prompt.tolist(), pil_images(images_in(prompt))
        shown: dict[str, Any] = {"image_data": images} if images else {}
        limit = self._sampling["max_tokens"]
        ids: list[int] = []
        logprobs: list[float] = []
        versions: list[int] = []
        started = time.perf_counter()
        while True:
            rest = {"max_tokens": limit - len(ids), **self._seeded(len(ids))}
            output = await self._client.generate(
                request_id=self._episode,
                prompt_ids=[*before, *ids],
                sampling_params={**self._sampling, **rest},
                **shown,
            )
            answer, version = list(output.token_ids), int(output.extra_fields["global_steps"])
            # verl's TensorRT-LLM server has end tokens of its own, and ignores these.
            end = next((place for place, one in enumerate(answer, 1) if one in self._ends), None)
            new = answer[:end]
            ids += new
            logprobs += (output.log_probs or [])[:end]
            versions += [version] * len(new)
            if end is not None or output.stop_reason not in ABORTED or len(ids) >= limit:
                break
            if not new:
                await asyncio.sleep(RETRY_SECONDS)
        self.seconds += time.perf_counter() - started
        found = {*versions} or {version}
        self.versions += sorted(found)
        self._turns += 1
        # verl's servers report "completed" both at an end token and at the limit.
        cut = len(ids) >= limit and ids[-1] not in self._ends
        counted = [one * self._updates for one in versions or [version]]
        return Completion(ids, logprobs or None, cut, counted if len(found) > 1 else counted[0])

    def _seeded(self, sampled: int) -> dict[str, int]:
        """The seed for the rest of a response, given how many of its tokens are sampled."""
        if self._seed is None:
            return {}
        # Other random numbers than those of the first tokens.
        rest = [sampled] if sampled else []
        # 31 bits, because engines store seeds in a signed 32-bit integer.
        return {"seed": derive_seed(self._seed, self._episode, self._turns, *rest) >> 32}
