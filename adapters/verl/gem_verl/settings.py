"""The section `gem` of verl's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, cast

from gem_train.settings import (
    CORRECTION_SETTINGS,
    FILTER_SETTINGS,
    Count,
    RunSettings,
    read_section,
    setting,
)
from gem_verl.plugin import VERL

if TYPE_CHECKING:
    from omegaconf import DictConfig


@dataclass(kw_only=True)
class VerlSettings(RunSettings):
    """`RunSettings`, with verl's names for verl's own settings."""

    adapter = VERL
    prefix: ClassVar[str] = "gem."
    response_limit: ClassVar[str] = "gem.max_response_tokens"
    owned: ClassVar[Mapping[str, str]] = {
        "advantage": "algorithm.adv_estimator",
        "gamma": "algorithm.gamma",
        "lam": "algorithm.lam",
        "chat_template_kwargs": "data.apply_chat_template_kwargs",
    }
    refused: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(FILTER_SETTINGS, "verl has a filter with refill of its own. Use algorithm.filter_groups."),
        **dict.fromkeys(CORRECTION_SETTINGS, "verl has corrections of its own. Use algorithm.rollout_correction."),
    }

    max_response_tokens: Count = setting(
        512, "Token limit of one response; `data.max_response_length` limits all tokens after the first prompt."
    )

    verl: dict[str, Any] = field(default_factory=dict[str, Any], repr=False)
    """verl's own configuration, in the process whose records name it; empty in others."""

    def described(self) -> dict[str, Any]:
        """The settings by name, with verl's own where they are known."""
        return super().described() | ({"verl": self.verl} if self.verl else {})

    @classmethod
    def of(cls, section: DictConfig) -> VerlSettings:
        """The settings in a configuration.

        Raises:
            SettingsError: an unknown name, or a value of the wrong type.
        """
        from omegaconf import OmegaConf

        return read_section(cls, cast("dict[str, Any]", OmegaConf.to_container(section, resolve=True)))

    @classmethod
    def defaults(cls) -> DictConfig:
        """The section as it is added to verl's configuration, with references to verl's own settings."""
        from omegaconf import OmegaConf

        values = {
            name: one.default_factory() if one.default_factory is not MISSING else one.default
            for name, one in cls.declared().items()
        }
        section = OmegaConf.create(values | {name: f"${{{theirs}}}" for name, theirs in cls.owned.items()})
        # Otherwise Hydra would refuse the names of an environment's arguments as unknown settings.
        OmegaConf.set_struct(section.env_kwargs, False)
        return section
