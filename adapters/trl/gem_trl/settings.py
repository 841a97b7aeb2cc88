"""The settings of a run that this adapter adds to TRL's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

import msgspec

from gem_train.settings import Count, RunSettings, setting
from gem_trl.plugin import TRL


@dataclass(kw_only=True)
class TRLSettings(RunSettings):
    """`RunSettings`, with TRL's names for TRL's own settings."""

    adapter = TRL
    owned: ClassVar[Mapping[str, str]] = {"max_concurrent": "per_device_train_batch_size"}
    response_limit: ClassVar[str] = "max_completion_length"

    seed: int = setting(42, RunSettings.declared()["seed"].metadata["help"])  # TRL's default
    max_context_tokens: Count | None = setting(
        None, "An episode that might exceed this ends truncated (`stop/context_full`). By default the model's limit."
    )
    min_generation_batch: Count | None = setting(
        None,
        "Sample as soon as this number of prompts is ready, while slower environments still run. By default the "
        "trainer waits for all, because transformers' samples depend on which prompts share a batch.",
    )

    keep_prefixes: bool = setting(
        True,
        "Compute once what prompts have in common: in transformers' generation the turns before, and what all first "
        "prompts of a batch begin with; in the loss what all rows begin with. Results are the same, up to rounding.",
    )
    critic_learning_rate: Annotated[float, msgspec.Meta(gt=0)] | None = setting(
        None,
        "Learning rate of the critic of `gae`, by default `learning_rate`; for a real model usually 10 times that.",
    )

    @classmethod
    def spelled(cls, name: str, value: object = None) -> str:
        """The setting as a Python keyword argument."""
        return super().spelled(name, None if value is None else repr(value))
