"""A rollout back end for verl, on transformers and the CPU: `actor_rollout_ref.rollout.name=transformers`.

As with vLLM there is a server process per replica. The actor's worker sends it the weights, the agent loops their
prompts. verl's own trainer, agent loops and weight synchronisation are at work on both sides of it.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import ray
import torch
from transformers import AutoModelForCausalLM
from verl.utils.config import omega_conf_to_dataclass
from verl.workers.config import HFModelConfig, RolloutConfig
from verl.workers.rollout.base import BaseRollout
from verl.workers.rollout.replica import RolloutReplica, TokenOutput

from gem_cpu.sampling import Engine, Request, Response

# How long to wait for more requests to share a batch with, in seconds; again and again while some arrive.
WAIT = 0.003
LARGEST_BATCH = 64
# The values that switch off what is not implemented; verl sends these keys with each request.
SWITCHED_OFF = {"top_p": 1.0, "top_k": -1, "repetition_penalty": 1.0}


class TransformersReplica(RolloutReplica):
    """One server, which gets the weights of one rank."""

    async def launch_servers(self) -> None:
        if self.world_size != 1:
            raise ValueError("the transformers rollout runs on one rank: tensor_model_parallel_size has to be 1")
        actor = ray.remote(num_cpus=0, max_concurrency=self.max_concurrency)(Server)  # pyright: ignore[reportCallIssue]
        server = actor.options(name=_server_name(self.replica_rank)).remote(self.config, self.model_config)
        await server.ready.remote()
        self.servers, self._server_handle = [server], server
        self._server_address = _server_name(self.replica_rank)  # there is no HTTP; only a name for the load balancer


class WeightSender(BaseRollout):
    """The rollout's end in the actor's worker: sends the weights to the server."""

    async def update_weights(
        self,
        weights: Iterator[tuple[str, torch.Tensor]],
        wire_format: str = "named_tensors",
        global_steps: int | None = None,
        **_: Any,
    ) -> None:
        if wire_format != "named_tensors":
            raise NotImplementedError(f"weights as {wire_format}")
        whole = {name: weight.detach().cpu() for name, weight in weights}
        server = ray.get_actor(_server_name(int(os.environ["RANK"])))
        await server.load.remote(whole, global_steps)

    async def resume(self, tags: list[str]) -> None:
        """The server keeps its memory."""

    async def release(self) -> None:
        """The server keeps its memory."""


class Server:
    """An actor of its own. Requests that arrive together are generated together, on a thread."""

    def __init__(self, config: RolloutConfig, model_config: Any) -> None:
        torch.set_num_threads(1)
        self._config = config
        model: HFModelConfig = omega_conf_to_dataclass(model_config, dataclass_type=HFModelConfig)
        self._context = config.max_model_len or model.hf_config.max_position_embeddings
        # As with verl's vLLM (load_format "dummy"), the file's weights are not read: only synchronised ones count.
        network = AutoModelForCausalLM.from_config(model.hf_config, dtype=torch.float32)
        self._engine = Engine(network, _end_tokens(model))
        self._global_steps: int | None = None
        self._waiting: asyncio.Queue[_Waiting] = asyncio.Queue()
        self._thread = ThreadPoolExecutor(1)  # a single one, so that weights never change within a batch
        self._batching: asyncio.Task[None] | None = None

    async def ready(self) -> None:
        """Returns when the server has been built."""
        self._batching = asyncio.create_task(self._batch_for_ever())

    async def load(self, weights: dict[str, torch.Tensor], global_steps: int | None) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._load, weights, global_steps)

    async def generate(
        self, prompt_ids: list[int], sampling_params: dict[str, Any], request_id: str, **extra: Any
    ) -> TokenOutput:
        """As verl's vLLM server: the same defaults, limits, and fields in what it returns."""
        given = {name: value for name, value in extra.items() if value is not None}
        if given:
            raise NotImplementedError(f"the transformers rollout takes text only; it got {sorted(given)}")
        params = dict(sampling_params)
        with_log_probs = params.pop("logprobs", False)
        request = self._request(list(prompt_ids), params, request_id)
        waiting = _Waiting(request, asyncio.get_running_loop().create_future())
        self._waiting.put_nowait(waiting)
        response, global_steps = await waiting.answer
        return TokenOutput(
            token_ids=response.token_ids,
            log_probs=response.log_probs if with_log_probs else None,
            stop_reason="completed",  # verl's word for both the end token and the limit
            extra_fields={"global_steps": global_steps},
        )

    def _request(self, prompt: list[int], params: dict[str, Any], request_id: str) -> Request:
        room = self._context - len(prompt)
        if room < 1:
            raise ValueError(f"a prompt of {len(prompt)} tokens leaves no room in a context of {self._context}")
        config = self._config
        default = min(config.response_length, config.prompt_length + config.response_length - len(prompt))
        limit = params.pop("max_tokens", params.pop("max_new_tokens", default))
        temperature = float(params.pop("temperature", 1.0))
        seed, ignore_eos = params.pop("seed", None), params.pop("ignore_eos", config.ignore_eos)
        for name, value in SWITCHED_OFF.items():
            if params.pop(name, value) != value:
                raise NotImplementedError(f"the transformers rollout samples with {name}={value} only")
        if params:
            raise NotImplementedError(f"the transformers rollout does not know {sorted(params)}")
        if seed is None:
            # The prompt is part of it because with full_determinism the turns of an episode share their request id.
            seed = _hash(config.seed, request_id, self._global_steps, prompt)
        return Request(prompt, max(1, min(limit, room)), temperature, seed, ignore_eos)

    async def _batch_for_ever(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            batch = [await self._waiting.get()]
            before = -1
            while before < self._waiting.qsize() < LARGEST_BATCH:
                before = self._waiting.qsize()
                await asyncio.sleep(WAIT)
            while not self._waiting.empty() and len(batch) < LARGEST_BATCH:
                batch.append(self._waiting.get_nowait())
            try:
                answers = await loop.run_in_executor(self._thread, self._generate, [one.request for one in batch])
            except Exception as error:
                for one in batch:
                    one.fail(error)
            else:
                for one, answer in zip(batch, answers, strict=True):
                    one.succeed(answer)

    # These two run on the thread, one after the other: so the number of steps is that of the weights in use.
    def _load(self, weights: dict[str, torch.Tensor], global_steps: int | None) -> None:
        self._engine.load(weights)
        if global_steps is not None:
            self._global_steps = global_steps

    def _generate(self, requests: list[Request]) -> list[tuple[Response, int | None]]:
        return [(response, self._global_steps) for response in self._engine.generate(requests)]

    # The rest of what verl calls on a server. There is no memory to free, and no cache between requests.
    async def wake_up(self, **_: Any) -> None: ...
    async def sleep(self) -> None: ...
    async def clear_kv_cache(self) -> None: ...
    async def release_kv_cache(self) -> None: ...
    async def resume_kv_cache(self) -> None: ...


class _Waiting(NamedTuple):
    request: Request
    answer: asyncio.Future[tuple[Response, int | None]]

    def succeed(self, answer: tuple[Response, int | None]) -> None:
        if not self.answer.done():  # its caller may have given up
            self.answer.set_result(answer)

    def fail(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


def _server_name(rank: int) -> str:
    return f"transformers_server_{rank}"


def _end_tokens(model: HFModelConfig) -> set[int]:
    """The tokenizer's and the generation configuration's, as in vLLM."""
    configured = getattr(model.generation_config, "eos_token_id", None)
    several = configured if isinstance(configured, list) else [configured]
    return {one for one in [model.tokenizer.eos_token_id, *several] if one is not None}


def _hash(*values: Any) -> int:
    return int.from_bytes(hashlib.blake2b(repr(values).encode(), digest_size=7).digest(), "big")
