"""Transformers on the CPU in place of ROLL's vLLM strategy, with the same interface and the same weight transfer.

ROLL's own routers and workers call it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from roll.distributed.strategy.strategy import InferenceStrategy
from roll.models.model_providers import default_tokenizer_provider
from roll.utils.collective import collective
from transformers import AutoConfig, AutoModelForCausalLM

from gem_cpu.batching import Batcher, seed_from
from gem_cpu.sampling import Engine, Request

SWITCHED_OFF = {"top_p": 1.0, "top_k": -1, "repetition_penalty": 1.0, "stop": None, "n": 1}
"""The values that switch off what this engine does not implement; ROLL sends these keys with each request."""


def create_sampling_params_for_vllm(gen_kwargs: Mapping[str, Any], collect_unfinished: bool = False) -> dict[str, Any]:
    """The generation settings of ROLL that go to the engine, under vLLM's names."""
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
    """One engine per worker. Requests that arrive together are generated together, on a thread."""

    strategy_name = "vllm"

    async def initialize(self, model_provider: Any) -> None:
        """Build the model. As with ROLL's vLLM (load_format "dummy"), its weights come from the trainer, not a file."""
        torch.set_num_threads(1)
        worker: Any = self.worker
        self._seed = worker.pipeline_config.seed
        arguments = self.worker_config.model_args
        self.tokenizer = default_tokenizer_provider(model_args=arguments)
        config = AutoConfig.from_pretrained(arguments.model_name_or_path)
        self.model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
        self._engine = Engine(self.model, {self.tokenizer.eos_token_id})
        self._aborting = threading.Event()
        self._batcher = Batcher(lambda requests: self._engine.generate(requests, self._aborting.is_set))
        self._asked = 0
        self.is_model_in_gpu = True

    async def generate_request(self, payload: Mapping[str, Any]) -> dict[str, Any]:
        """Continue one prompt."""
        params = dict(payload["sampling_params"])
        for name, value in SWITCHED_OFF.items():
            if params[name] != value:
                raise NotImplementedError(f"this engine samples with {name}={value} only, not {params[name]}")
        self._asked += 1
        prompt = [int(token) for token in payload["input_ids"]]
        seed = seed_from(self._seed, self._asked, prompt)
        ends = frozenset[int](params["stop_token_ids"])
        request = Request(prompt, params["max_tokens"], float(params["temperature"]), seed, ends=ends)
        response = await self._batcher.ask(request)
        return {
            "output_token_ids": [response.token_ids],
            "finish_reasons": ["abort" if response.interrupted else "stop" if response.ended else "length"],
            "output_logprobs": [response.log_probs],
        }

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
        """Load new weights, all at once."""
        if is_lora:
            raise NotImplementedError(
                "this engine takes whole weights. Next: leave out lora_target, or use vLLM on a GPU"
            )
        await self._batcher.run(self._receive, names, dtypes, shapes, group_name)

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

    async def abort_requests(self, request_ids: Sequence[str]) -> None:
        """End all requests where they are; of several routers, each sends its requests again."""
        self._aborting.set()
        await self._batcher.run(lambda: None)  # the batch before it has ended
        self._aborting.clear()

    def get_metrics(self, metric_names: Sequence[str] | None = None) -> dict[str, float]:
        return {}

    # Other methods that ROLL calls on an engine. There is no memory to free, and no cache between requests.
    async def load_states(self, *args: Any, **kwargs: Any) -> None: ...
    async def offload_states(self, *args: Any, **kwargs: Any) -> None: ...
    async def process_weights_after_loading(self, *args: Any, **kwargs: Any) -> None: ...
