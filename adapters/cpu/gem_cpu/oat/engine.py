"""A stand-in for vLLM, which has no build for CI's Python and torch. Transformers samples instead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer


@dataclass
class SamplingParams:
    n: int = 1
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = -1
    max_tokens: int = 16
    stop_token_ids: list[int] | None = None
    logprobs: int | None = None


class LoRARequest:
    """vLLM's name, which Oat imports."""


class LLM:
    """A model in the process of the actor."""

    learner: Any = None
    """The learner whose weights this engine reads; for vLLM, weights are sent by broadcast."""
    sampled: list[tuple[tuple[int, ...], tuple[int, ...]]]
    """All prompts and responses of this process."""

    def __init__(self, model: str, max_model_len: int | None = None, **_: Any) -> None:
        self._model = AutoModelForCausalLM.from_pretrained(model, torch_dtype=torch.float32).eval()
        self._tokenizer = AutoTokenizer.from_pretrained(model)
        limit = max_model_len or self._model.config.max_position_embeddings
        self.llm_engine = SimpleNamespace(model_config=SimpleNamespace(max_model_len=limit))

    def get_tokenizer(self) -> Any:
        return self._tokenizer

    @torch.no_grad()
    def generate(self, *, prompt_token_ids: Sequence[Sequence[int]], sampling_params: SamplingParams, **_: Any) -> Any:
        pad, ends = self._tokenizer.pad_token_id, self._ends(sampling_params)
        width = max(map(len, prompt_token_ids))
        rows = [[pad] * (width - len(ids)) + [*ids] for ids in prompt_token_ids]
        mask = [[0] * (width - len(ids)) + [1] * len(ids) for ids in prompt_token_ids]
        greedy = sampling_params.temperature == 0
        output = self._model.generate(
            input_ids=torch.tensor(rows),
            attention_mask=torch.tensor(mask),
            max_new_tokens=sampling_params.max_tokens,
            do_sample=not greedy,
            temperature=None if greedy else sampling_params.temperature,
            top_k=None if greedy else 0,
            top_p=None,
            pad_token_id=pad,
            eos_token_id=ends,
            output_logits=True,
            return_dict_in_generate=True,
        )
        logits = torch.stack(output.logits, dim=1) / (sampling_params.temperature or 1)
        sampled = output.sequences[:, width:]
        logprobs = logits.log_softmax(-1).gather(2, sampled[:, :, None])[:, :, 0]
        return [
            self._answer([*prompt], ids, numbers, ends, sampling_params.logprobs is not None)
            for prompt, ids, numbers in zip(prompt_token_ids, sampled.tolist(), logprobs.tolist(), strict=True)
        ]

    def _ends(self, sampling_params: SamplingParams) -> list[int]:
        """The end tokens of the request, the tokenizer and the generation configuration, as in vLLM."""
        configured = self._model.generation_config.eos_token_id
        own = configured if isinstance(configured, list) else [configured]
        ends = [*(sampling_params.stop_token_ids or []), self._tokenizer.eos_token_id, *own]
        return [*dict.fromkeys(one for one in ends if one is not None)]

    def _answer(self, prompt: list[int], ids: list[int], logprobs: list[float], ends: list[int], wanted: bool) -> Any:
        end = next((place for place, one in enumerate(ids) if one in ends), None)
        length = len(ids) if end is None else end + 1
        known = [{one: SimpleNamespace(logprob=number)} for one, number in zip(ids, logprobs, strict=True)]
        SAMPLED.append((tuple(prompt), tuple(ids[:length])))
        answer = SimpleNamespace(
            token_ids=tuple(ids[:length]),
            logprobs=known[:length] if wanted else None,
            finish_reason="length" if end is None else "stop",
        )
        return SimpleNamespace(prompt_token_ids=prompt, outputs=[answer])

    def collective_rpc(self, method: str, args: Sequence[Any] = ()) -> None:
        """`init_process_group`, which does nothing here, or `update_weight`."""
        if method == "update_weight":
            learned = _parameter(LLM.learner.model.model.module, args[0])
            self._model.get_parameter(args[0]).data.copy_(learned.data)

    def sleep(self, level: int = 1) -> None: ...

    def wake_up(self) -> None: ...


def _parameter(module: Any, name: str) -> Any:
    """A weight of the learner; with LoRA, Oat has merged the adapters into it."""
    if not hasattr(module, "peft_config"):
        return module.get_parameter(name)
    layer, _, kind = name.rpartition(".")
    found = module.base_model.model.get_submodule(layer)
    return getattr(found, "base_layer", found).get_parameter(kind)


SAMPLED: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
"""All prompts and responses that were sampled in this process."""
