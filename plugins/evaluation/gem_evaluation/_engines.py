"""What samples local weights: transformers, or vLLM where it is installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, cast

from gem_evaluation._adapters import Adapter
from gem_evaluation._errors import ModelSetupError
from gem_train.processor import computes_bf16

EngineName: TypeAlias = Literal["transformers", "vllm"]


_RANKS = (8, 16, 32, 64, 128, 256, 320, 512)


@dataclass(frozen=True)
class Sampled:
    """The tokens of a response."""

    ids: list[int]
    truncated: bool


class Engine(Protocol):
    """Samples responses to prompts of tokens, a batch at a time."""

    @property
    def limit(self) -> int | None:
        """Tokens that a prompt and its response may have together; `None` where the model names no limit."""
        ...

    @property
    def generation_config(self) -> Any:
        """The model's, which may name ends of a response."""
        ...

    def stop_at(self, ends: Sequence[int]) -> None:
        """End a response at these tokens."""
        ...

    def sample(self, prompts: Sequence[Sequence[int]]) -> list[Sampled]:
        """A response to each prompt. The last token of one that is not truncated ends it."""
        ...

    def close(self) -> None:
        """Give the memory back."""
        ...


def default_engine() -> EngineName:
    """vLLM where it is installed."""
    return "transformers" if importlib.util.find_spec("vllm") is None else "vllm"


class TransformersEngine:
    """transformers in this process.

    Args:
        path: a folder, which may have an adapter alone, or a name on the hub.
        options: `temperature`, `top_p`, `top_k`, `max_tokens`.
        device: of torch; `None` takes a GPU where there is one.

    Weights keep the type that they were saved in, but on a processor without bfloat16 arithmetic they are in float32.
    """

    def __init__(self, path: str, options: Mapping[str, Any], device: str | None) -> None:
        import torch
        from transformers import AutoModelForCausalLM

        place = device or ("cuda" if torch.cuda.is_available() else "cpu")
        dtype = torch.float32 if place == "cpu" and not computes_bf16() else "auto"
        self._model = cast("Any", AutoModelForCausalLM).from_pretrained(path, dtype=dtype).to(place).eval()
        self._options = options
        self._ends: list[int] = []

    @property
    def generation_config(self) -> Any:
        """As loaded with the model."""
        return self._model.generation_config

    def stop_at(self, ends: Sequence[int]) -> None:
        """See `Engine.stop_at`."""
        self._ends = [*ends]

    @property
    def limit(self) -> int | None:
        """The model's number of positions."""
        return getattr(self._model.config, "max_position_embeddings", None)

    def sample(self, prompts: Sequence[Sequence[int]]) -> list[Sampled]:
        """See `Engine.sample`."""
        import torch

        longest, ends = max(map(len, prompts)), self._ends
        # Generation pads what has ended with the padding token, so it has to be one that ends a response.
        pad = ends[0] if ends else 0
        ids = torch.tensor([[pad] * (longest - len(one)) + [*one] for one in prompts])
        mask = torch.tensor([[0] * (longest - len(one)) + [1] * len(one) for one in prompts])
        with torch.inference_mode():
            output = self._model.generate(
                input_ids=ids.to(self._model.device),
                attention_mask=mask.to(self._model.device),
                max_new_tokens=self._options["max_tokens"],
                pad_token_id=pad,
                eos_token_id=ends or None,
                **self._sampling,
            )
        return [_until_end(one, {*ends}) for one in output[:, longest:].tolist()]

    @property
    def _sampling(self) -> dict[str, Any]:
        temperature = self._options["temperature"]
        if temperature == 0:
            return {"do_sample": False, "temperature": None, "top_p": None, "top_k": None}
        limits = {"top_p": self._options.get("top_p", 1.0), "top_k": self._options.get("top_k", 0)}
        return {"do_sample": True, "temperature": temperature, **limits}

    def close(self) -> None:
        """Nothing to do: the weights go with this object."""


class VllmEngine:
    """vLLM, which takes most of a GPU's memory.

    Args:
        path, options: as `TransformersEngine`.
        adapter: of the folder, if it has no whole weights.

    Raises:
        ModelSetupError: vLLM cannot use an adapter of this kind.
    """

    def __init__(self, path: str, options: Mapping[str, Any], adapter: Adapter | None = None) -> None:
        import torch
        import vllm  # pyright: ignore[reportMissingImports]
        from transformers import AutoConfig

        library: Any = vllm
        lora = {} if adapter is None else _lora_options(adapter)
        path = path if adapter is None else adapter.base
        self._config: Any = cast("Any", AutoConfig).from_pretrained(path)
        saved = getattr(self._config, "dtype", None)
        # By default, vLLM would sample from float32 weights in half precision.
        dtype = "auto" if saved is None else str(saved).removeprefix("torch.")
        if not torch.cuda.is_available() and not computes_bf16():
            dtype = "float32"
        self._path, self._options = path, options
        self._llm: Any = library.LLM(path, dtype=dtype, disable_log_stats=True, **lora)
        self._adapter = None if adapter is None else _lora_request(adapter)
        if self._adapter is not None:
            self._llm.llm_engine.add_lora(self._adapter)  # now, as a failure would otherwise be that of a response
        self.stop_at(())

    @property
    def generation_config(self) -> Any:
        """The saved one, or else the model's config."""
        from transformers import GenerationConfig

        with suppress(OSError):
            return cast("Any", GenerationConfig).from_pretrained(self._path)
        return self._config.get_text_config()

    def stop_at(self, ends: Sequence[int]) -> None:
        """See `Engine.stop_at`."""
        import vllm  # pyright: ignore[reportMissingImports]

        library: Any = vllm
        self._sampling: Any = library.SamplingParams(**self._options, stop_token_ids=[*ends], detokenize=False)

    @property
    def limit(self) -> int | None:
        """vLLM's maximum length."""
        return self._llm.llm_engine.model_config.max_model_len

    def sample(self, prompts: Sequence[Sequence[int]]) -> list[Sampled]:
        """See `Engine.sample`."""
        asked = [{"prompt_token_ids": [*ids]} for ids in prompts]
        generated = self._llm.generate(asked, self._sampling, use_tqdm=False, lora_request=self._adapter)
        found = [one.outputs[0] for one in generated]
        return [Sampled([*one.token_ids], one.finish_reason == "length") for one in found]

    def close(self) -> None:
        """End vLLM's process."""
        self._llm.llm_engine.engine_core.shutdown()


def _lora_options(adapter: Adapter) -> dict[str, Any]:
    if adapter.kind != "LORA":
        raise ModelSetupError(
            f"{adapter.folder} has an adapter of the kind {adapter.kind}, and vLLM knows LORA only. "
            "Next: --engine transformers"
        )
    # vLLM knows these ranks only; a smaller one is padded.
    return {"enable_lora": True, "max_lora_rank": next((one for one in _RANKS if one >= adapter.rank), adapter.rank)}


def _lora_request(adapter: Adapter) -> Any:
    requests: Any = importlib.import_module("vllm.lora.request")
    return requests.LoRARequest(adapter.folder.name, 1, str(adapter.folder.absolute()))


def _until_end(ids: list[int], ends: set[int]) -> Sampled:
    for place, token in enumerate(ids):
        if token in ends:
            return Sampled(ids[: place + 1], truncated=False)
    return Sampled(ids, truncated=True)
