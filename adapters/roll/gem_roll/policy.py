"""ROLL's inference engines as a policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from roll.distributed.scheduler.protocol import DataProto
from roll.distributed.scheduler.router import RouterClient, is_report_data_finished
from tensordict import TensorDict

from gem_core.episode import TokenIds
from gem_core.rollout import Completion


class Stopped(Exception):
    """ROLL ends the rollout; the unfinished episode is discarded."""


class RouterPolicy:
    """Samples the turns of an episode, token ids in and token ids out.

    Args:
        client: client of ROLL's router.
        generating: ROLL's generation settings.
        uid: number of the environment manager. The router sends its requests to one engine, to use its prefix cache.
        running: returns false once the rollout ends.
    """

    def __init__(
        self, client: RouterClient, generating: Mapping[str, Any], uid: int, running: Callable[[], bool]
    ) -> None:
        self._client = client
        self._generating = generating
        self._uid = uid
        self._running = running

    async def __call__(self, prompt: TokenIds) -> Completion:
        """The completion of one prompt.

        ROLL aborts running requests when weights change. The turn is then sampled again with the new weights.

        Raises:
            Stopped: the rollout ends.
        """
        while self._running():
            answer: Any = await self._client.generate_request(self._request(prompt), request_id=None, uid=self._uid)
            if answer is None:
                break
            if is_report_data_finished(answer):
                return _completion(answer.meta_info)
        raise Stopped

    def _request(self, prompt: TokenIds) -> DataProto:
        ids = torch.tensor([prompt.tolist()])
        batch = TensorDict({"input_ids": ids, "attention_mask": torch.ones_like(ids)}, batch_size=1)
        # A copy each time, because the router modifies it.
        return DataProto(batch=batch, meta_info={"generation_config": dict(self._generating)})


def _completion(answer: Mapping[str, Any]) -> Completion:
    logprobs = answer.get("output_logprobs")
    return Completion(
        ids=list(answer["output_token_ids"][0]),
        logprobs=list(logprobs[0]) if logprobs else None,
        truncated=answer["finish_reasons"][0] == "length",
    )
