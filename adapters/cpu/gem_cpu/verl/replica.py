"""A rollout back end for verl, on transformers and the CPU: `actor_rollout_ref.rollout.name=transformers`.

As with vLLM, each replica has a server process. The actor's worker sends weights to the server, and agent loops send
prompts. verl's own trainer, agent loops and weight synchronization run unchanged.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import ray
import torch
from verl.utils.config import omega_conf_to_dataclass
from verl.utils.model import get_hf_auto_model_class
from verl.workers.config import HFModelConfig, RolloutConfig
from verl.workers.rollout.base import BaseRollout
from verl.workers.rollout.replica import RolloutReplica, TokenOutput
from verl.workers.rollout.utils import ensure_async_iterator

from gem_cpu.batching import Batcher, seed_from
from gem_cpu.sampling import Engine, Request, Response
from gem_train.images import MIN_LOGIT_BIAS

# The values that switch off what this server does not implement; verl sends these keys with each request.
SWITCHED_OFF = {"top_p": 1.0, "top_k": -1, "repetition_penalty": 1.0}


class TransformersReplica(RolloutReplica):
    """One server with the weights of one rank."""

    async def launch_servers(self) -> None:
        if self.world_size != 1:
            raise ValueError("the transformers rollout runs on one rank: tensor_model_parallel_size must be 1")
        actor = ray.remote(num_cpus=0, max_concurrency=self.max_concurrency)(Server)  # pyright: ignore[reportCallIssue]
        server = actor.options(name=_server_name(self.replica_rank)).remote(self.config, self.model_config)
        await server.ready.remote()
        self.servers, self._server_handle = [server], server
        self._server_address = _server_name(self.replica_rank)  # no HTTP address, only a name for the load balancer


class WeightSender(BaseRollout):
    """The rollout in the process that has the weights: sends them to the server.

    Args:
        replica_rank: the server's; by default that of this process, which trains.
    """

    def __init__(self, *args: Any, replica_rank: int | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.replica_rank = int(os.environ["RANK"]) if replica_rank is None else replica_rank

    async def update_weights(
        self,
        weights: Iterator[tuple[str, torch.Tensor]] | AsyncIterator[tuple[str, torch.Tensor]],
        wire_format: str = "named_tensors",
        global_steps: int | None = None,
        **_: Any,
    ) -> None:
        if wire_format != "named_tensors":
            raise NotImplementedError(f"weights as {wire_format}")
        whole = {name: weight.detach().cpu() async for name, weight in ensure_async_iterator(weights)}
        server = ray.get_actor(_server_name(self.replica_rank))
        await server.load.remote(whole, global_steps)

    async def resume(self, tags: list[str]) -> None:
        """The server keeps its memory."""

    async def release(self) -> None:
        """The server keeps its memory."""


class Server:
    """The server, a Ray actor. Requests that arrive together are generated together, on a thread."""

    def __init__(self, config: RolloutConfig, model_config: Any) -> None:
        torch.set_num_threads(1)
        self._config = config
        model: HFModelConfig = omega_conf_to_dataclass(model_config, dataclass_type=HFModelConfig)
        self._context = config.max_model_len or model.hf_config.get_text_config().max_position_embeddings
        # As with verl's vLLM (load_format "dummy"), weights come from the trainer, not from a file.
        auto_class: Any = get_hf_auto_model_class(model.hf_config)
        network = auto_class.from_config(model.hf_config, dtype=torch.float32)
        self._processor = model.processor
        self._engine = Engine(network, _end_tokens(model))
        self._global_steps: int | None = None
        self._batcher = Batcher(self._generate)
        self._aborting = threading.Event()
        self._admitting = asyncio.Event()
        self._admitting.set()

    async def ready(self) -> None:
        """Return when the server has been built."""

    async def load(self, weights: dict[str, torch.Tensor], global_steps: int | None) -> None:
        await self._batcher.run(self._load, weights, global_steps)

    async def generate(
        self,
        prompt_ids: list[int],
        sampling_params: dict[str, Any],
        request_id: str,
        image_data: list[Any] | None = None,
        **extra: Any,
    ) -> TokenOutput:
        """Generate as verl's vLLM server does, with the same defaults, limits and result fields."""
        given = {name: value for name, value in extra.items() if value is not None}
        if given:
            raise NotImplementedError(f"the transformers rollout takes text and images; it got {sorted(given)}")
        await self._admitting.wait()
        params = dict(sampling_params)
        with_log_probs = params.pop("logprobs", False)
        images = await self._batcher.run(self._read, image_data) if image_data else {}
        request = self._request(list(prompt_ids), params, request_id, images)
        response, global_steps = await self._batcher.ask(request)
        return TokenOutput(
            token_ids=response.token_ids,
            log_probs=response.log_probs if with_log_probs else None,
            # verl's words: "completed" is both the end token and the limit.
            stop_reason="aborted" if response.interrupted else "completed",
            extra_fields={"global_steps": global_steps},
        )

    def _request(
        self, prompt: list[int], params: dict[str, Any], request_id: str, images: dict[str, torch.Tensor]
    ) -> Request:
        room = self._context - len(prompt)
        if room < 1:
            raise ValueError(f"a prompt of {len(prompt)} tokens leaves no room in a context of {self._context}")
        config = self._config
        default = min(config.response_length, config.prompt_length + config.response_length - len(prompt))
        limit = params.pop("max_tokens", params.pop("max_new_tokens", default))
        temperature = float(params.pop("temperature", 1.0))
        seed, ignore_eos = params.pop("seed", None), params.pop("ignore_eos", config.ignore_eos)
        ends = frozenset(params.pop("stop_token_ids", ()))
        biases = params.pop("logit_bias", {})  # here an id with the least one is never sampled
        if set(biases.values()) - {MIN_LOGIT_BIAS}:
            raise NotImplementedError(f"the transformers rollout has no bias but {MIN_LOGIT_BIAS}; it got {biases}")
        for name, value in SWITCHED_OFF.items():
            if params.pop(name, value) != value:
                raise NotImplementedError(f"the transformers rollout samples with {name}={value} only")
        if params:
            raise NotImplementedError(f"the transformers rollout does not support {sorted(params)}")
        if seed is None:
            # The prompt is part of the seed because with full_determinism all turns of an episode share a request id.
            seed = seed_from(config.seed, request_id, self._global_steps, prompt)
        return Request(prompt, max(1, min(limit, room)), temperature, seed, ignore_eos, ends, frozenset(biases), images)

    def _read(self, images: list[Any]) -> dict[str, torch.Tensor]:
        """Cut images into patches, as vLLM does with the same processor."""
        made = self._processor.image_processor(images=images, return_tensors="pt")
        return {name: made[name] for name in ("pixel_values", "image_grid_thw")}

    # These two run on the thread, one after the other, so the number of steps matches the weights in use.
    def _load(self, weights: dict[str, torch.Tensor], global_steps: int | None) -> None:
        self._engine.load(weights)
        if global_steps is not None:
            self._global_steps = global_steps

    def _generate(self, requests: Sequence[Request]) -> list[tuple[Response, int | None]]:
        responses = self._engine.generate(requests, self._aborting.is_set)
        return [(response, self._global_steps) for response in responses]

    async def abort_all_requests(self, reject_request: bool = False) -> None:
        """End all requests where they are, as verl's vLLM server does. Later ones wait for `resume_generation`."""
        if reject_request:
            raise NotImplementedError("the transformers rollout does not leave the load balancer")
        self._admitting.clear()
        self._aborting.set()
        await self._batcher.run(lambda: None)  # the batch before it has ended

    async def resume_generation(self) -> None:
        """Admit requests again."""
        self._aborting.clear()
        self._admitting.set()

    # Other methods that verl calls on a server. There is no memory to free, and no cache between requests.
    async def wake_up(self, **_: Any) -> None: ...
    async def sleep(self) -> None: ...
    async def clear_kv_cache(self) -> None: ...
    async def release_kv_cache(self) -> None: ...
    async def resume_kv_cache(self) -> None: ...


def _server_name(rank: int) -> str:
    return f"transformers_server_{rank}"


def _end_tokens(model: HFModelConfig) -> set[int]:
    """The end tokens of the tokenizer and of the generation configuration, as in vLLM."""
    configured = getattr(model.generation_config, "eos_token_id", None)
    several = configured if isinstance(configured, list) else [configured]
    return {one for one in [model.tokenizer.eos_token_id, *several] if one is not None}
