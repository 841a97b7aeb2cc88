"""A policy with weights of its own, for sampling while the trainer updates."""

from __future__ import annotations

import copy
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from transformers import LogitsProcessor, LogitsProcessorList
from trl.trainer.utils import pad

from gem_core.episode import Completion, TokenIds
from gem_trl._copies import copy_of

if TYPE_CHECKING:
    from trl import GRPOTrainer


class PolicyCopy:
    """Samples with a copy of the trainer's model, as TRL samples with transformers, and records log-probabilities.

    `publish` and calls may come from different threads. Frozen weights are shared with the model, trained ones exist
    twice more: those that sample, and those that the next call will sample with.

    Args:
        trainer: the trainer; its model is on one device, whole.
        limit: token limit of a completion.
    """

    def __init__(self, trainer: GRPOTrainer, limit: int) -> None:
        self._trainer: Any = trainer
        self._limit = limit
        live: Any = trainer.accelerator.unwrap_model(trainer.model)
        self._model = copy_of(live).eval().requires_grad_(False)
        self._model.generation_config = copy.deepcopy(self._trainer.generation_config)
        self._live = {name: one for name, one in live.named_parameters() if one.requires_grad}
        own = dict(self._model.named_parameters())
        self._own = {name: own[name] for name in self._live}
        self._next = {name: one.detach().clone() for name, one in self._live.items()}
        self._next_version = self._version = trainer.state.global_step
        self._lock = threading.Lock()

    def publish(self) -> None:
        """Have the next call sample with the trainer's present weights."""
        with self._lock, torch.no_grad():
            for name, one in self._live.items():
                self._next[name].copy_(one)
            self._next_version = self._trainer.state.global_step

    def __call__(self, prompts: Sequence[TokenIds]) -> list[Completion]:
        """One completion per prompt, with the newest published weights."""
        self._load()
        trainer, device = self._trainer, self._trainer.accelerator.device
        tensors = [torch.tensor(prompt.tolist()) for prompt in prompts]
        # As in TRL's own generation, so that the same weights and random numbers give the same samples.
        shape = {"padding_side": "left", "pad_to_multiple_of": trainer.pad_to_multiple_of}
        ids = pad(tensors, padding_value=trainer._tokenizer.pad_token_id, **shape).to(device)
        mask = pad([torch.ones_like(one) for one in tensors], padding_value=0, **shape).to(device)
        recorder = _LogprobRecorder(trainer.temperature)
        with torch.no_grad(), trainer.accelerator.autocast():
            sampled = self._model.generate(
                input_ids=ids,
                attention_mask=mask,
                generation_config=trainer.generation_config,
                logits_processor=LogitsProcessorList([recorder]),
            )
        completions = sampled[:, ids.shape[1] :]
        return self._completions(completions.tolist(), recorder.logprobs(sampled).tolist())

    def _load(self) -> None:
        with self._lock, torch.no_grad():
            if self._version != self._next_version:
                for name, one in self._own.items():
                    one.copy_(self._next[name])
                self._version = self._next_version

    def _completions(self, rows: list[list[int]], logprobs: list[list[float]]) -> list[Completion]:
        ends = set(self._trainer.eos_token_ids)
        found: list[Completion] = []
        for ids, numbers in zip(rows, logprobs, strict=True):
            length = next((place + 1 for place, one in enumerate(ids) if one in ends), len(ids))
            cut = length >= self._limit and ids[length - 1] not in ends
            found.append(Completion(ids[:length], numbers[:length], cut, self._version))
        return found


class _LogprobRecorder(LogitsProcessor):
    """Keeps the log-probability of each sampled token. transformers calls it before it divides by the temperature."""

    def __init__(self, temperature: float) -> None:
        self._temperature = temperature
        self._before: torch.Tensor | None = None
        self._chosen: list[torch.Tensor] = []

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """Take the logits (rows, vocabulary) of the next token; the ids (rows, tokens) end with the last one."""
        self._choose(input_ids[:, -1])
        self._before = (scores.float() / self._temperature).log_softmax(-1)
        return scores

    def logprobs(self, sampled: torch.Tensor) -> torch.Tensor:
        """(rows, sampled tokens), given all ids at the end."""
        self._choose(sampled[:, -1])
        return torch.stack(self._chosen, dim=1)

    def _choose(self, ids: torch.Tensor) -> None:
        if self._before is not None:
            self._chosen.append(self._before.gather(1, ids[:, None]).squeeze(1))
