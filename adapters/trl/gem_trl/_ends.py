"""Where TRL's engines end a response."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trl import GRPOTrainer


def stop_at(trainer: GRPOTrainer, ends: Sequence[int | None]) -> None:
    """Have the trainer's engine end a response at these tokens, and at those of `generation_kwargs`.

    TRL knows the ends of the tokenizer and of the model's generation config. That config stays as it is.

    Args:
        trainer: built, with its engine.
        ends: token ids; `None` for a tokenizer without an end.
    """
    own: Any = trainer
    chosen: dict[str, Any] = own.args.generation_kwargs or {}
    name = "stop_token_ids" if own.use_vllm else "eos_token_id"
    found = [one for one in [*ends, *_listed(chosen.get(name))] if one is not None]
    own.eos_token_ids = [*dict.fromkeys(found)]
    if own.use_vllm:
        own.vllm_generation.generation_kwargs = {**chosen, name: own.eos_token_ids}
    else:
        own.generation_config.eos_token_id = own.generation_kwargs[name] = own.eos_token_ids


def _listed(value: int | Sequence[int] | None) -> Sequence[int]:
    return [value] if isinstance(value, int) else value or []
