"""For ROLL's vLLM strategy: transformers on the CPU, with the same interface and the same weight transfer.

ROLL's routers, workers and weight transfer are at work on its other side.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from roll.distributed.strategy.strategy import InferenceStrategy
from roll.models.model_providers import default_tokenizer_provider
from roll.utils.collective import collective
from transformers import AutoConfig, AutoModelForCausalLM

from gem_cpu.sampling import Engine, Request, Response

WAIT = 0.003
"""Seconds to wait for more requests to share a batch with; again and again while some arrive."""
LARGEST_BATCH = 64
SWITCHED_OFF = {"top_p": 1.0, "top_k": -1, "repetition_penalty": 1.0, "stop": None, "n": 1}
"""The values that switch off what is not implemented; ROLL sends these keys with each request."""


def create_sampling_params_for_vllm(gen_kwargs: Mapping[str, Any], collect_unfinished: bool = False) -> dict[str, Any]:
    """What of ROLL's generation settings goes to the engine, under vLLM's names."""
    return {
        "max_tokens": gen_kwargs["max_new_tokens"],
        "temperature": gen_kwargs["temperature"],
        "top_p": gen_kwargs["top_p"],
        "top_k": gen_kwargs["top_k"],
        "stop_token_ids": gen_kwargs["eos_token_id"],
        "repetition_penalty": gen_kwargs["repetition_penalty"],
        "n": gen_kwargs["num_return_sequences"],
        "stop": gen_kwargs["stop_strings"],
    }


class VllmStrategy(InferenceStrategy):
    """One engine per worker; requests that arrive together are generated together, on a thread."""

    strategy_name = "vllm"

    async def initialize(self, model_provider: Any) -> None:
        """As ROLL's vLLM (load_format "dummy") it does not read the file's weights: only those that are sent count."""
        torch.set_num_threads(1)
        worker: Any = self.worker
        self._seed = worker.pipeline_config.seed
        arguments = self.worker_config.model_args
        self.tokenizer = default_tokenizer_provider(model_args=arguments)
        config = AutoConfig.from_pretrained(arguments.model_name_or_path)
        self.model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
        self._ends = {self.tokenizer.eos_token_id, self.tokenizer.pad_token_id}
        self._engine = Engine(self.model, self._ends)
        self._thread = ThreadPoolExecutor(1)  # a single one, so that weights never change within a batch
        self._waiting: asyncio.Queue[tuple[Request, asyncio.Future[Response]]] = asyncio.Queue()
        self._batching = asyncio.create_task(self._batch_for_ever())
        self._asked = 0
        self.is_model_in_gpu = True

    async def generate_request(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Continue one prompt."""
        params = dict(payload["sampling_params"])
        for name, value in SWITCHED_OFF.items():
            if params[name] != value:
                raise NotImplementedError(f"this engine samples with {name}={value} only, not {params[name]}")
        if set(params["stop_token_ids"]) != self._ends:
            raise NotImplementedError(f"this engine stops at {self._ends} only, not {params['stop_token_ids']}")
        self._asked += 1
        prompt = [int(token) for token in payload["input_ids"]]
        seed = _hash(self._seed, self._asked, prompt)
        request = Request(prompt, params["max_tokens"], float(params["temperature"]), seed)
        answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self._waiting.put_nowait((request, answer))
        response = await answer
        ended = response.token_ids[-1] in self._ends
        return {
            "output_token_ids": [response.token_ids],
            "finish_reasons": ["stop" if ended else "length"],
            "output_logprobs": [response.log_probs],
        }

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
            responses = await loop.run_in_executor(self._thread, self._engine.generate, [one for one, _ in batch])
            for (_, answer), response in zip(batch, responses, strict=True):
                if not answer.done():
                    answer.set_result(response)

    async def setup_collective_group(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        master_address: str,
        master_port: int,
        rank_offset: int,
        world_size: int,
        group_name: str,
        backend: str | None = None,
    ) -> None:
        """Join the group over which the trainer sends its weights."""

        def join() -> None:
            collective.init_collective_group(
                world_size,
                rank=rank_offset,
                master_addr=master_address,
                master_port=master_port,
                backend=backend or "gloo",
                group_name=group_name,
            )

        await asyncio.get_running_loop().run_in_executor(None, join)

    async def broadcast_parameter(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        names: Sequence[str],
        dtypes: Sequence[torch.dtype],
        shapes: Sequence[Any],
        group_name: str,
        is_lora: bool = False,
    ) -> None:
        """Take new weights, all of them at once."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._receive, names, dtypes, shapes, group_name)

    def _receive(self, names: Sequence[str], dtypes: Sequence[Any], shapes: Sequence[Any], group_name: str) -> None:
        weights = {
            name: torch.empty(shape, dtype=dtype) for name, dtype, shape in zip(names, dtypes, shapes, strict=True)
        }
        under_way: list[Any] = [
            collective.broadcast(tensor=weight, src_rank=0, group_name=group_name, async_op=True)
            for weight in weights.values()
        ]
        for one in under_way:
            one.wait()
        self._engine.load(weights)

    def get_metrics(self, metric_names: Sequence[str] | None = None) -> dict[str, float]:
        return {}

    # The rest of what ROLL calls on an engine. There is no memory to free, and no cache between requests.
    async def abort_requests(self, request_ids: Sequence[str]) -> None: ...
    async def load_states(self, *args: Any, **kwargs: Any) -> None: ...
    async def offload_states(self, *args: Any, **kwargs: Any) -> None: ...
    async def process_weights_after_loading(self, *args: Any, **kwargs: Any) -> None: ...


def _hash(*values: Any) -> int:
    return int.from_bytes(hashlib.blake2b(repr(values).encode(), digest_size=7).digest(), "big")
