"""The settings of a run that this adapter adds to Oat's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal

from gem_oat.plugin import OAT
from gem_train.settings import CORRECTION_SETTINGS, Count, RunSettings, setting


@dataclass(kw_only=True)
class OatSettings(RunSettings):
    """`RunSettings` as flags of Oat. Oat's learner has one advantage per row, so a row is a turn."""

    adapter = OAT
    prefix: ClassVar[str] = "--"
    separator: ClassVar[str] = " "
    response_limit: ClassVar[str] = "--generate_max_length"
    eval_response_limit: ClassVar[str] = "--eval_generate_max_length"
    refused: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(CORRECTION_SETTINGS, "Oat has truncated importance sampling of its own. Use --tis_c."),
    }

    row: Literal["turn"] = setting("turn", "What a training row is: a `turn`.")  # pyright: ignore[reportIncompatibleVariableOverride]
    group_size: Count = setting(
        1, "Episodes per task, for the estimators that compare them (`grpo`, `drgrpo`, `rloo`)."
    )

    def described(self) -> dict[str, Any]:
        """The settings by name, and Oat's own arguments under `oat`."""
        own = super().described()
        return {**own, "oat": {one.name: getattr(self, one.name) for one in fields(self) if one.name not in own}}
