"""The section `gem` of the configuration."""

from __future__ import annotations

from typing import Any

from omegaconf import DictConfig, OmegaConf

from gem_core.errors import SettingsError
from gem_core.training.settings import PlaySettings, read_section


class GemSettings(PlaySettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The section `gem`; `conf/gem.yaml` says what each field means and has the defaults."""

    max_response_tokens: int

    @staticmethod
    def spelled(name: str, value: object = None) -> str:
        """As on the command line."""
        return f"gem.{PlaySettings.spelled(name, value)}"

    @classmethod
    def of(cls, section: DictConfig) -> GemSettings:
        """The settings in a configuration.

        Raises:
            SettingsError: a value of the wrong type.
        """
        if missing := sorted(OmegaConf.missing_keys(section)):
            raise SettingsError(
                f"no {missing[0]}: for example gem.env=game:GuessTheNumber-v0-easy; see `gem-core list`"
            )
        values: Any = OmegaConf.to_container(section, resolve=True)
        return read_section(cls, values)
