"""The section `gem` of ROLL's yaml."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from gem_core.errors import SettingsError, near_matches
from gem_core.training.settings import PlaySettings, Split, read_section

Mode = Literal["train", "val"]
"""ROLL's word for a split."""


class GemSettings(PlaySettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What ROLL's own configuration has no place for."""

    advantage: str = "rebn"
    """The estimator, per turn."""
    updates: int = 1
    """Updates on each batch, whatever the number of its rows."""
    chat_template_kwargs: dict[str, Any] = msgspec.field(default_factory=dict[str, Any])
    """Arguments of the chat template."""

    @staticmethod
    def spelled(name: str, value: object = None) -> str:
        """As on the command line."""
        return f"gem.{PlaySettings.spelled(name, value)}"

    @classmethod
    def of(cls, section: Mapping[str, Any]) -> GemSettings:
        """The settings in a section.

        Raises:
            SettingsError: no environment, a setting that does not exist, or a value of the wrong type.
        """
        if not section.get("env"):
            raise SettingsError("no gem.env: for example gem.env=game:GuessTheNumber-v0-easy; see `gem-core list`")
        for name in section:
            if name not in cls.__struct_fields__:
                raise SettingsError(f"there is no setting gem.{name}.{near_matches(name, cls.__struct_fields__)}")
        return read_section(cls, section)


def split_of(mode: Mode) -> Split:
    """Ours for ROLL's."""
    return "train" if mode == "train" else "eval"
