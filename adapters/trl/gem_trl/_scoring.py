"""Log-probabilities for the loss with less computed: fewer padded tokens, and what all rows begin with only once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from transformers import DynamicCache

from gem_train.versions import cache_name
from gem_trl._prefixes import MIN_SHARE, can_compute_beginnings, keeps_all_ids

_CPU_ROWS = 8
"""Rows of a pass on a CPU. With ten ids each, they are computed at 0.8 times the rate of many more, but padded less."""


@dataclass(frozen=True)
class _Rows:
    """Rows that begin in the first column; padding is to the right."""

    ids: torch.Tensor
    """int (B, W)."""
    lengths: torch.Tensor
    """int (B,)."""
    prompts: torch.Tensor
    """int (B,), how many of the ids of a row are its prompt."""

    @classmethod
    def of(cls, ids: torch.Tensor, mask: torch.Tensor, kept: int) -> _Rows | None:
        """Rows of TRL, whose last `kept` columns are completions; `None` if padding is not outside of the ids."""
        lengths, starts = mask.sum(1), mask.argmax(1)
        columns = torch.arange(int(lengths.max()), device=ids.device)
        places = (starts[:, None] + columns).clamp(max=ids.shape[1] - 1)
        if not mask.gather(1, places)[columns < lengths[:, None]].all():
            return None
        return cls(ids.gather(1, places), lengths, mask[:, :-kept].sum(1))

    def only(self, chosen: torch.Tensor) -> _Rows:
        """Some of the rows, no wider than they need."""
        lengths = self.lengths[chosen]
        return _Rows(self.ids[chosen, : int(lengths.max())], lengths, self.prompts[chosen])

    def shared(self) -> int:
        """How many ids of the prompts all rows begin with, less one at least: it predicts the first of a completion."""
        limit = int(self.prompts.min()) - 1
        alike = (self.ids[:, : max(limit, 0)] == self.ids[:1, : max(limit, 0)]).all(0)
        length = len(alike) if bool(alike.all()) else int(alike.int().argmin())
        return length if len(self.ids) > 1 and length >= MIN_SHARE * self.ids.shape[1] else 0


def can_score(model: Any) -> bool:
    """Whether `log_probs` gives what the model gives: it keeps all ids in its layers, and nothing in it is random."""
    return keeps_all_ids(model) and can_compute_beginnings(model) and model._supports_logits_to_keep()


def log_probs(
    model: Any, ids: torch.Tensor, mask: torch.Tensor, kept: int
) -> tuple[torch.Tensor, torch.Tensor | None] | None:
    """Log-probabilities and entropies of completions, as TRL's own computation gives them, up to rounding.

    The gradient goes through what is computed once, too.

    Args:
        model: with the head that TRL fuses; see `can_score`.
        ids, mask: int (B, T), prompts padded to the left and completions padded to the right.
        kept: columns of the completions.

    Returns:
        float (B, kept) each, 0 in padding; the entropies if the head computes them. `None` if a row has padding inside.
    """
    rows = _Rows.of(ids, mask, kept)
    if rows is None:
        return None
    shared = rows.shared()
    beginning = _computed(model, rows.ids[:1, :shared]) if shared else None
    # Rows of about the same length together have little padding.
    order = rows.lengths.argsort()
    groups = order.split(_CPU_ROWS if ids.device.type == "cpu" else len(order))
    parts = [_scored(model, rows.only(group), shared, beginning, kept) for group in groups]
    back = order.argsort()
    entropies = [one for _, one in parts if one is not None]
    return torch.cat([one for one, _ in parts])[back], torch.cat(entropies)[back] if entropies else None


def _computed(model: Any, ids: torch.Tensor) -> DynamicCache:
    cache = DynamicCache(config=model.config)
    known: dict[str, Any] = {cache_name(): cache}
    model(input_ids=ids, use_cache=True, logits_to_keep=1, **known)
    return cache


def _scored(
    model: Any, rows: _Rows, shared: int, beginning: DynamicCache | None, kept: int
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """As `log_probs`, for rows that continue the first `shared` ids, whose keys and values are known."""
    count, width = rows.ids.shape
    known: dict[str, Any] = {} if beginning is None else {cache_name(): _repeated(model, beginning, count)}
    columns = torch.arange(width, device=rows.ids.device)
    present = columns < rows.lengths[:, None]
    said = present & (columns >= rows.prompts[:, None])
    labels = rows.ids.masked_fill(~said, -100)[:, shared:]
    output = model(
        input_ids=rows.ids[:, shared:], attention_mask=present.long(), labels=labels, fused_lm_head=True, **known
    )
    # Column c of the output is of the id after it.
    columns = rows.prompts[:, None] + torch.arange(kept, device=rows.ids.device)
    padding = columns >= rows.lengths[:, None]
    places = (columns - shared - 1).clamp(max=width - shared - 2)
    scores, entropies = (
        None if one is None else one.gather(1, places).masked_fill(padding, 0)
        for one in (output.log_probs, output.entropy)
    )
    assert scores is not None
    return scores, entropies


def _repeated(model: Any, beginning: DynamicCache, count: int) -> DynamicCache:
    """A cache of `count` rows that all begin alike; the other cache stays as it is."""
    cache = DynamicCache(config=model.config)
    layers: Any = zip(beginning.layers, cache.layers, strict=True)
    for old, new in layers:
        new.update(*(one.expand(count, -1, -1, -1) for one in (old.keys, old.values)))
    return cache
