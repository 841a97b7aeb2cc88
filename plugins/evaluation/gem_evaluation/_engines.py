"""What samples local weights: transformers, or vLLM where it is installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, cast

EngineName: TypeAlias = Literal["transformers", "vllm"]


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
        path: a folder or a name on the hub.
        options: `temperature`, `top_p`, `top_k`, `max_tokens`.
        device: of torch; `None` takes a GPU where there is one.
    """

    def __init__(self, path: str, options: Mapping[str, Any], device: str | None) -> None:
        import torch
        from transformers import AutoModelForCausalLM

        model = cast("Any", AutoModelForCausalLM).from_pretrained(path, dtype="auto")
        self._model = model.to(device or ("cuda" if torch.cuda.is_available() else "cpu")).eval()
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
    """vLLM, which takes most of a GPU's memory. Arguments as `TransformersEngine`."""

    def __init__(self, path: str, options: Mapping[str, Any]) -> None:
        import vllm  # pyright: ignore[reportMissingImports]
        from transformers import AutoConfig

        library: Any = vllm
        self._config: Any = cast("Any", AutoConfig).from_pretrained(path)
        saved = getattr(self._config, "dtype", None)
        # By default, vLLM would sample from float32 weights in half precision.
        dtype = "auto" if saved is None else str(saved).removeprefix("torch.")
        self._path, self._options = path, options
        self._llm: Any = library.LLM(path, dtype=dtype, disable_log_stats=True)
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
        found = [one.outputs[0] for one in self._llm.generate(asked, self._sampling, use_tqdm=False)]
        return [Sampled([*one.token_ids], one.finish_reason == "length") for one in found]

    def close(self) -> None:
        """End vLLM's process."""
        self._llm.llm_engine.engine_core.shutdown()


def _until_end(ids: list[int], ends: set[int]) -> Sampled:
    for place, token in enumerate(ids):
        if token in ends:
            return Sampled(ids[: place + 1], truncated=False)
    return Sampled(ids, truncated=True)
