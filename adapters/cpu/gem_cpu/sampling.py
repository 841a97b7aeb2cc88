"""Samples from a causal language model on the CPU, many requests at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from transformers import PreTrainedModel

from gem_train.versions import cache_name


@dataclass(frozen=True)
class Request:
    """A prompt to continue. `temperature` 0 is greedy; `seed` makes the response reproducible.

    `images` has what the image processor of a Qwen-VL model made of the prompt's images: `pixel_values` and
    `image_grid_thw`. `ends` has ids that end the response besides the engine's own, `never` ids that are never sampled.
    """

    prompt: Sequence[int]
    max_tokens: int
    temperature: float
    seed: int
    ignore_eos: bool = False
    ends: frozenset[int] = frozenset()
    never: frozenset[int] = frozenset()
    images: Mapping[str, torch.Tensor] = field(default_factory=dict[str, torch.Tensor])


@dataclass(frozen=True)
class Response:
    """The sampled ids, with the token that ended the response if there was one, and their log-probabilities."""

    token_ids: list[int]
    log_probs: list[float]
    ended: bool = False
    """The last token ended it."""
    interrupted: bool = False
    """Generating was interrupted before the response ended."""


class Engine:
    """Generates with a model whose weights are loaded from outside, before the first call.

    Args:
        model: the model.
        eos: ids that end a response of any request, unless it ignores them.
    """

    def __init__(self, model: PreTrainedModel, eos: Collection[int]) -> None:
        self._model = model.eval()
        self._eos = frozenset(eos)
        self._has_weights = False

    @torch.inference_mode()
    def load(self, weights: Mapping[str, torch.Tensor]) -> None:
        """Copy all weights. Missing or unknown weights are an error, although vLLM would silently keep old ones."""
        target = self._model.state_dict()
        needed = {name for name, _ in self._model.named_parameters()}  # only the first name of tied weights
        if not needed <= weights.keys() <= target.keys():
            missing, unknown = sorted(needed - weights.keys()), sorted(weights.keys() - target.keys())
            raise ValueError(f"these weights are missing: {missing}; these are not the model's: {unknown}")
        for name, weight in weights.items():
            target[name].copy_(weight)
        self._has_weights = True

    @torch.inference_mode()
    def generate(self, requests: Sequence[Request], interrupted: Callable[[], bool] = lambda: False) -> list[Response]:
        """Continue all prompts together. A response depends on its own request only, up to rounding.

        Args:
            requests: what to continue.
            interrupted: asked before each token; if it says yes, the responses end where they are.
        """
        if not self._has_weights:
            raise RuntimeError("the weights have not been synchronized yet")
        count = len(requests)
        longest = max(len(one.prompt) for one in requests)
        limits = torch.tensor([one.max_tokens for one in requests])
        steps = int(limits.max())
        # Greedy log-probabilities are those of temperature 1, as vLLM reports them.
        greedy = torch.tensor([one.temperature == 0 for one in requests])
        temperature = torch.tensor([one.temperature or 1.0 for one in requests]).unsqueeze(1)
        # All random numbers are drawn here, one per token, with one generator per row.
        uniform = torch.ones(count, steps, dtype=torch.float64)
        ids = torch.zeros(count, longest, dtype=torch.long)
        mask = torch.zeros(count, longest + steps, dtype=torch.long)
        for row, one in enumerate(requests):
            generator = torch.Generator().manual_seed(one.seed)
            uniform[row, : one.max_tokens] = torch.rand(one.max_tokens, dtype=torch.float64, generator=generator)
            ids[row, longest - len(one.prompt) :] = torch.tensor(one.prompt)
            mask[row, longest - len(one.prompt) :] = 1
        shown = self._shown(requests, ids)
        positions = self._positions(ids, mask[:, :longest], shown)
        embeddings: Any = self._model.get_input_embeddings()
        never = _marked([one.never for one in requests], embeddings.num_embeddings)
        ends = [one.ends if one.ignore_eos else one.ends | self._eos for one in requests]
        stops = _marked(ends, embeddings.num_embeddings)
        padded = bool((mask == 0).any())  # without padding, the model needs no mask
        tokens = torch.zeros(count, steps, dtype=torch.long)
        log_probs = torch.zeros(count, steps)
        lengths = limits.clone()
        alive, ended = torch.ones(count, dtype=torch.bool), torch.zeros(count, dtype=torch.bool)
        name, cache = cache_name(), None
        for step in range(steps):
            if interrupted():
                lengths[alive] = step
                break
            output = self._model(
                input_ids=ids,
                attention_mask=mask[:, : longest + step] if padded else None,
                position_ids=positions,
                use_cache=True,
                logits_to_keep=1,
                **{name: cache},
                **shown,
            )
            cache, shown = output[name], {}
            logits = output.logits[:, -1].float().masked_fill(never, -torch.inf)
            scores = torch.log_softmax(logits / temperature, dim=-1)
            chosen = _sample(scores, uniform[:, step])
            chosen = torch.where(greedy, scores.argmax(-1), chosen)
            tokens[:, step] = chosen
            log_probs[:, step] = scores.gather(1, chosen.unsqueeze(1)).squeeze(1)
            now = alive & stops.gather(1, chosen.unsqueeze(1)).squeeze(1)
            lengths[now] = step + 1
            ended |= now
            alive &= ~now & (limits > step + 1)
            if not alive.any():
                break
            ids, positions = chosen.unsqueeze(1), positions[..., -1:] + 1
        rows = zip(tokens.tolist(), log_probs.tolist(), lengths.tolist(), ended.tolist(), alive.tolist(), strict=True)
        return [Response(ids[:length], scores[:length], *how) for ids, scores, length, *how in rows]

    def _shown(self, requests: Sequence[Request], ids: torch.Tensor) -> dict[str, torch.Tensor]:
        """The images of all prompts, as the model takes them; empty if there are none."""
        shown = [one.images for one in requests if one.images]
        if not shown:
            return {}
        types = (ids == self._model.config.image_token_id).int()
        return {name: torch.cat([one[name] for one in shown]) for name in shown[0]} | {"mm_token_type_ids": types}

    def _positions(self, ids: torch.Tensor, mask: torch.Tensor, shown: dict[str, Any]) -> torch.Tensor:
        """(rows, ids) positions; with images (3, rows, ids), as the ids of an image have a place in three axes."""
        if not shown:
            return (mask.cumsum(1) - 1).clamp(min=0)
        model: Any = self._model
        grids, types = shown["image_grid_thw"], shown["mm_token_type_ids"]
        return model.model.get_rope_index(ids, types, image_grid_thw=grids, attention_mask=mask)[0]


def _marked(ids: Sequence[frozenset[int]], size: int) -> torch.Tensor:
    """(rows, `size`) whether a row has an id; ids beyond the vocabulary are never sampled."""
    marks = torch.zeros(len(ids), size, dtype=torch.bool)
    for row, own in enumerate(ids):
        marks[row, [one for one in own if one < size]] = True
    return marks


def _sample(scores: torch.Tensor, uniform: torch.Tensor) -> torch.Tensor:
    """One token per row, by the inverse of the cumulative distribution."""
    total = scores.double().exp().cumsum(-1)
    index = torch.searchsorted(total, uniform.unsqueeze(1) * total[:, -1:], right=True).squeeze(1)
    return index.clamp(max=scores.shape[-1] - 1)
