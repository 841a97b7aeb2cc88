"""ROLL's inference engines as a policy."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch
from roll.distributed.scheduler.protocol import DataProto
from roll.distributed.scheduler.router import RouterClient, is_report_data_finished
from tensordict import TensorDict

from gem_core.episode import TokenIds
from gem_train.rollout import Completion

VERSION = "gem_version"
"""Key of the version of the weights in the metrics of an answer, which ROLL's client passes on."""


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

        ROLL aborts running requests when weights change. The new weights then continue the turn, token for token.

        Raises:
            Stopped: the rollout ends.
        """
        before = prompt.tolist()
        ids: list[int] = []
        logprobs: list[float] | None = []
        versions: list[int] = []
        while self._running():
            request = self._request([*before, *ids], self._generating["max_new_tokens"] - len(ids))
            answer: Any = await self._client.generate_request(request, request_id=None, uid=self._uid)
            if answer is None:
                break
            new = _first(answer.meta_info, "output_token_ids") or []
            known = _first(answer.meta_info, "output_logprobs")
            ids += new
            logprobs = None if logprobs is None or (new and known is None) else [*logprobs, *(known or [])]
            versions += [answer.meta_info["metrics"][VERSION]] * len(new)
            if is_report_data_finished(answer) or len(ids) >= self._generating["max_new_tokens"]:
                cut = answer.meta_info["finish_reasons"][0] != "stop"
                return Completion(ids, logprobs, cut, versions if len({*versions}) != 1 else versions[0])
        raise Stopped

    def _request(self, ids: Sequence[int], limit: int) -> DataProto:
        table = torch.tensor([ids])
        batch = TensorDict({"input_ids": table, "attention_mask": torch.ones_like(table)}, batch_size=1)
        # A copy each time, because the router modifies it.
        return DataProto(batch=batch, meta_info={"generation_config": {**self._generating, "max_new_tokens": limit}})


class EngineProxy:
    """The way of ROLL's client to the router. Requests have all end tokens, answers the version of the weights.

    ROLL's client writes the tokenizer's own end of a text into each request, whatever its settings say.

    ROLL tells its managers the step, then lets the router admit requests, and waits for all of them before it changes
    the weights. So the step while a request is under way says what its weights were trained on.

    Args:
        proxy: ROLL's.
        ends: token ids that end a turn, besides ROLL's.
        version: returns the number of updates before the step that ROLL reported last.
    """

    def __init__(self, proxy: Any, ends: Collection[int], version: Callable[[], int]) -> None:
        self._proxy = proxy
        self._ends = ends
        self._version = version

    async def generate_request(self, payload: Any, request_id: str, uid: int) -> Any:
        """ROLL's method."""
        version = self._version()
        sampling = payload["sampling_params"]
        known = [one for one in sampling["stop_token_ids"] if one is not None]
        ends = [*dict.fromkeys([*self._ends, *known])]
        payload = {**payload, "sampling_params": {**sampling, "stop_token_ids": ends}}
        response = await self._proxy.generate_request(payload=payload, request_id=request_id, uid=uid)
        return {**response, "metrics": {**response.get("metrics", {}), VERSION: version}}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._proxy, name)


def _first(answer: Mapping[str, Any], name: str) -> list[Any] | None:
    """The entry of the only sample, if there is one."""
    return list(answer[name][0]) if answer.get(name) else None
