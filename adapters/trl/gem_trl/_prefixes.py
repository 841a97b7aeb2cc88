"""What the prompts of a batch have in common is computed once, for generation by transformers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from transformers import DynamicCache, GenerationConfig
from transformers.cache_utils import DynamicLayer

from gem_train.versions import cache_name

_BYTES = 4
"""Bytes of an id in a key."""

MIN_SHARE = 0.25
"""A common beginning that is a smaller share of the longest prompt may cost more than it saves."""


@dataclass(frozen=True)
class _Kept:
    """What a call of `generate` has left."""

    cache: DynamicCache
    starts: NDArray[np.int64]
    """(B,), the column of the first id of each row; padding is to the left of it."""
    rows: dict[int, dict[bytes, int]]
    """By number of ids: the ids of a row, and its index. Keys and values of all these ids are in the cache."""

    def find(self, ids: bytes) -> tuple[int, int]:
        """The row that is the longest true beginning of a prompt, and its length; (0, 0) if there is none."""
        for length in sorted(self.rows, reverse=True):
            if length * _BYTES < len(ids) and (row := self.rows[length].get(ids[: length * _BYTES])) is not None:
                return row, length
        return 0, 0


class KeptPrefixes:
    """Prompts that continue a prompt and response of the call before, id by id, are not computed again.

    Within `used_by`, `generate` of a model gets a cache of what it computed in the call before. After `clear`, it gets
    a cache of what all prompts begin with, computed once. The inputs, the random numbers and the result of `generate`
    are those of a call without the cache; logits differ by rounding. A call where nothing continues, and a model whose
    cache is not a plain one (sliding windows, linear attention), run as without.

    The rows of a call share the columns of one cache. So a row is computed again from where the row with the most new
    ids begins to be new: a batch with an unknown prompt saves nothing.

    Keys and values are those of the weights that computed them: call `clear` whenever weights may change.
    """

    def __init__(self) -> None:
        self._kept: _Kept | None = None

    def clear(self) -> None:
        """Keep nothing."""
        self._kept = None

    @contextmanager
    def used_by(self, model: Any) -> Iterator[None]:
        """`model.generate` uses and keeps keys and values until the end of the block."""
        before = vars(model).get("generate")
        original = model.generate

        def generate(
            input_ids: torch.Tensor,
            attention_mask: torch.Tensor,
            generation_config: GenerationConfig,
            **others: Any,
        ) -> Any:
            if others or not _is_plain(model, generation_config):
                self.clear()
                return original(input_ids, attention_mask=attention_mask, generation_config=generation_config, **others)
            cache = self._continued(model, input_ids, attention_mask)
            known = {cache_name(): cache}
            output = original(input_ids, attention_mask=attention_mask, generation_config=generation_config, **known)
            self._keep(cache, output, attention_mask, generation_config)
            return output

        model.generate = generate
        try:
            yield
        finally:
            del model.generate
            if before is not None:
                model.generate = before

    def _continued(self, model: Any, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> DynamicCache:
        """A cache with the first columns of these prompts; empty if nothing of a prompt is known."""
        cache = DynamicCache(config=model.config)
        kept, self._kept = self._kept, None
        prompts, starts = _ids_of(input_ids), _first_columns(attention_mask)
        if kept is None and can_compute_beginnings(model):
            kept = _common_beginning(model, prompts, starts, input_ids.device)
        if kept is None:
            return cache
        found = [kept.find(row[start:].tobytes()) for row, start in zip(prompts, starts.tolist(), strict=True)]
        rows, known = np.array(found).T
        width = prompts.shape[1]
        count = width - int((width - starts - known).max())
        if count <= 0:
            return cache
        # Column c of a prompt that begins in column `start` holds its id number c - start.
        columns = np.clip(np.arange(count) - starts[:, None] + kept.starts[rows][:, None], 0, None)
        _copy(kept.cache, cache, torch.from_numpy(rows), torch.from_numpy(columns))
        return cache

    def _keep(
        self, cache: DynamicCache, output: torch.Tensor, attention_mask: torch.Tensor, config: GenerationConfig
    ) -> None:
        width = cache.get_seq_length()
        if width != output.shape[1] - 1:  # the keys and values of the last id are computed by the next call
            return
        ids, starts = _ids_of(output), _first_columns(attention_mask)
        ends = np.minimum(_ends(ids, attention_mask.shape[1], config), width)
        rows: dict[int, dict[bytes, int]] = {}
        for row, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
            rows.setdefault(end - start, {})[ids[row, start:end].tobytes()] = row
        self._kept = _Kept(cache, starts, rows)


def can_compute_beginnings(model: Any) -> bool:
    """Whether one pass for all rows gives them what a pass of their own does, in this process and in others."""
    if torch.distributed.is_initialized() and torch.distributed.get_world_size() > 1:
        return False  # processes may share weights, and then all must compute equally often
    # With dropout, one pass for all rows would use other random numbers, and all rows would lose the same states.
    rates = [one.p for one in model.modules() if isinstance(one, torch.nn.Dropout)]
    return not (model.training and any([*rates, getattr(model.config, "attention_dropout", 0.0)]))


def _common_beginning(
    model: Any, prompts: NDArray[np.int32], starts: NDArray[np.int64], device: torch.device
) -> _Kept | None:
    """What all prompts begin with, as if a call had left it; `None` if it saves nothing."""
    columns = np.arange(int((prompts.shape[1] - starts).min()) - 1)  # at least one id of each prompt is computed later
    beginnings = np.take_along_axis(prompts, starts[:, None] + columns, axis=1)
    alike = (beginnings == beginnings[0]).all(axis=0)
    length = len(alike) if alike.all() else int(alike.argmin())
    if len(prompts) == 1 or length < MIN_SHARE * prompts.shape[1]:
        return None
    ids = prompts[:1, starts[0] : starts[0] + length]
    cache = DynamicCache(config=model.config)
    options: dict[str, Any] = {cache_name(): cache, "use_cache": True}
    if model._supports_logits_to_keep():
        options["logits_to_keep"] = 1
    with torch.no_grad():
        model(input_ids=torch.from_numpy(ids).long().to(device), **options)
    if cache.get_seq_length() != length:
        return None
    return _Kept(cache, np.zeros(1, dtype=np.int64), {length: {ids.tobytes(): 0}})


def _is_plain(model: Any, config: GenerationConfig) -> bool:
    """Whether every layer keeps the keys and values of all ids in one tensor, and a row is one sample."""
    if config.cache_implementation is not None or config.use_cache is False:
        return False
    if (config.num_beams or 1) > 1 or (config.num_return_sequences or 1) > 1:
        return False
    return keeps_all_ids(model)


def keeps_all_ids(model: Any) -> bool:
    """Whether every layer keeps the keys and values of all ids in one tensor."""
    if model.config.is_encoder_decoder:
        return False
    if getattr(getattr(model, "active_peft_config", None), "is_prompt_learning", False):
        return False  # its virtual tokens have columns of their own
    layers: Sequence[Any] = DynamicCache(config=model.config).layers
    return bool(layers) and all(type(layer) is DynamicLayer for layer in layers)


def _copy(source: DynamicCache, target: DynamicCache, rows: torch.Tensor, columns: torch.Tensor) -> None:
    """Fill an empty cache with some columns of some rows: int (B,) and (B, K). Empties the source layer by layer."""
    layers: Any = zip(source.layers, target.layers, strict=True)
    for old, new in layers:
        keys, values = (
            table[rows.to(table.device)[:, None], :, columns.to(table.device)].transpose(1, 2)
            for table in (old.keys, old.values)
        )
        old.reset()
        new.update(keys, values)


def _ids_of(table: torch.Tensor) -> NDArray[np.int32]:
    return table.to(torch.int32).cpu().numpy()


def _first_columns(attention_mask: torch.Tensor) -> NDArray[np.int64]:
    return attention_mask.argmax(dim=1).cpu().numpy()


def _ends(ids: NDArray[np.int32], prompt_width: int, config: GenerationConfig) -> NDArray[np.int64]:
    """(B,), one past the column of the last sampled id of each row: an id that ends a response is the last."""
    ending = np.isin(ids[:, prompt_width:], np.atleast_1d(np.array(config.eos_token_id, dtype=np.int64)))
    lengths = np.where(ending.any(axis=1), ending.argmax(axis=1) + 1, ending.shape[1])
    return prompt_width + lengths
