"""The section `gem` of ROLL's yaml."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from gem_roll.plugin import ROLL
from gem_train.settings import (
    CORRECTION_SETTINGS,
    FILTER_SETTINGS,
    Count,
    RunSettings,
    Split,
    read_section,
    setting,
)

Mode = Literal["train", "val"]
"""ROLL's name of a split."""


@dataclass(kw_only=True)
class ROLLSettings(RunSettings):
    """`RunSettings`, with ROLL's own setting for the discount."""

    adapter = ROLL
    prefix: ClassVar[str] = "gem."
    response_limit: ClassVar[str] = "train_env_manager.generating_args.max_new_tokens"
    eval_response_limit: ClassVar[str] = "val_env_manager.generating_args.max_new_tokens"
    owned: ClassVar[Mapping[str, str]] = {"gamma": "step_reward_gamma"}
    refused: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(
            FILTER_SETTINGS, "ROLL's queue plays the episodes of a batch, and cannot refill it. Leave it out."
        ),
        **dict.fromkeys(CORRECTION_SETTINGS, "ROLL has corrections of its own. Use train_infer_correction."),
    }

    updates: Count = setting(1, "Updates on each batch, however many rows it has.")

    roll: dict[str, Any] = field(default_factory=dict[str, Any], repr=False)
    """ROLL's own configuration, in the process whose records name it; empty in others."""

    def described(self) -> dict[str, Any]:
        """The settings by name, with ROLL's own where they are known."""
        return super().described() | ({"roll": self.roll} if self.roll else {})

    @classmethod
    def of(cls, section: Mapping[str, Any]) -> ROLLSettings:
        """The settings in a section. Raises `SettingsError` as `read_section`."""
        return read_section(cls, section)


def batches_ahead(settings: ROLLSettings, passes: int) -> int:
    """How many batches may be ahead, within `gem.max_staleness`.

    Args:
        settings: the section `gem`.
        passes: ROLL's `ppo_epochs`.

    Raises:
        SettingsError: a batch serves more updates than the bound has.
    """
    return settings.batches_within_bound(settings.updates * passes, "gem.updates or ppo_epochs")


def split_of(mode: Mode) -> Split:
    """The split of a mode."""
    return "train" if mode == "train" else "eval"
