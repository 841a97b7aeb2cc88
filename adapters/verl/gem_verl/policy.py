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
        client: verl's; it sends all turns of an episode to one server, whose prefix cache then helps.
        sampling: verl's sampling parameters.
        max_tokens: limit of one response.
        ends: token ids that end a turn.
        episode: names the episode.
        seed: for engines that sample with a seed per request; `None` for none.
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
        """Of the weights that sampled each turn."""
        self.seconds = 0.0
        """Spent on sampling."""

    async def __call__(self, prompt: TokenIds) -> Completion:
        """The completion of one prompt."""
        seed = {}
        if self._seed is not None:
            # 31 bits: engines keep seeds in a signed 32-bit number.
            seed["seed"] = derive_seed(self._seed, self._episode, len(self.versions)) >> 32
        started = time.perf_counter()
        output = await self._client.generate(
            request_id=self._episode, prompt_ids=prompt.tolist(), sampling_params={**self._sampling, **seed}
        )
        self.seconds += time.perf_counter() - started
        self.versions.append(int(output.extra_fields["global_steps"]))
        ids = list(output.token_ids)
        # verl's servers call both ends of a response, its own and the limit, "completed".
        cut = len(ids) >= self._sampling["max_tokens"] and ids[-1] not in self._ends
        return Completion(ids, list(output.log_probs) if output.log_probs else None, cut)
