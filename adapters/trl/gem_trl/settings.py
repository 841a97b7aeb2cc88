"""The settings of a run that this adapter adds to TRL's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from gem_core.training.settings import Count, RunSettings, setting


@dataclass(kw_only=True)
class GemSettings(RunSettings):
    """`RunSettings`, with TRL's words for what TRL decides."""

    owned: ClassVar[Mapping[str, str]] = {"max_concurrent": "per_device_train_batch_size"}

    max_context_tokens: Count | None = setting(
        None, "An episode that might outgrow this ends truncated (`stop/context_full`). By default the model's limit."
    )
    min_generation_batch: Count | None = setting(
        None,
        "Sample as soon as this number of prompts is ready, while slower environments still work. By default the "
        "trainer waits for all, because what transformers samples depends on which prompts share a batch.",
    )

    @classmethod
    def spelled(cls, name: str, value: object = None) -> str:
        """As in Python."""
        return super().spelled(name, None if value is None else repr(value))
