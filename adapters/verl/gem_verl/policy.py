"""verl's inference servers as a policy."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import Any

from verl.workers.rollout.llm_server import LLMServerClient

from gem_core.episode import TokenIds
from gem_core.rollout import Completion
from gem_core.seeding import derive_seed


class ServerPolicy:
    """Samples the turns of one episode, token ids in and token ids out.

    Args:
        client: verl's client, which sends all turns of an episode to one server, to use its prefix cache.
        sampling: verl's sampling parameters.
        max_tokens: token limit of one response.
        ends: token ids that end a turn.
        episode: name of the episode.
        seed: seed for engines that take a seed per request; `None` for no seed.
    """

    def __init__(
        self,
        client: LLMServerClient,
        sampling: Mapping[str, Any],
        *,
        max_tokens: int,
        ends: Collection[int],
        episode: str,
        seed: int | None,
    ) -> None:
        self._client = client
        self._sampling = {**sampling, "max_tokens": max_tokens}
        self._ends = ends
        self._episode = episode
        self._seed = seed
        self.versions: list[int] = []
        """The version of the weights that sampled each turn."""
        self.seconds = 0.0
        """Seconds spent on sampling."""

    async def __call__(self, prompt: TokenIds) -> Completion:
        """The completion of one prompt."""
        seed = {}
        if self._seed is not None:
            # 31 bits, because engines store seeds in a signed 32-bit integer.
            seed["seed"] = derive_seed(self._seed, self._episode, len(self.versions)) >> 32
        started = time.perf_counter()
        output = await self._client.generate(
            request_id=self._episode, prompt_ids=prompt.tolist(), sampling_params={**self._sampling, **seed}
        )
        self.seconds += time.perf_counter() - started
        self.versions.append(int(output.extra_fields["global_steps"]))
        ids = list(output.token_ids)
        # verl's servers report "completed" both at an end token and at the limit.
        cut = len(ids) >= self._sampling["max_tokens"] and ids[-1] not in self._ends
        return Completion(ids, list(output.log_probs) if output.log_probs else None, cut, self.versions[-1])
