"""The section `gem` of the configuration, and what cannot work together."""

from __future__ import annotations

import importlib
from typing import Any, Literal

import msgspec
from omegaconf import DictConfig, OmegaConf

from gem_core.env import Env
from gem_core.errors import SettingsError
from gem_core.failures import ErrorAction, FailurePolicy
from gem_core.plugins import manager
from gem_core.rollout import RolloutSettings
from gem_core.vector import weights_of


class GemSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The section `gem`; `conf/gem.yaml` says what each field means and has the defaults."""

    env: str | list[str]
    env_weights: list[float]
    env_kwargs: dict[str, Any] | None
    wrappers: list[str]
    modules: list[str]
    eval_env: str | list[str]
    eval_episodes: int
    view: Literal["episode", "turn"]
    history: int | None
    system_prompt: str | None
    max_response_tokens: int
    truncated_is_invalid: bool
    plugins: list[str]
    vector_backend: Literal["sync", "thread", "process", "ray"]
    vector_workers: int | None
    max_concurrent: int | None
    env_timeout: float | None
    env_retries: int
    env_failure: Literal["truncate", "drop", "raise"]
    max_env_failure_share: float | None
    seed: int
    recording: str | None
    report: str | None

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
        try:
            return msgspec.convert(OmegaConf.to_container(section, resolve=True), cls, strict=True)
        except msgspec.ValidationError as error:
            raise SettingsError(f"the section gem of the configuration: {error}") from error

    @property
    def train_weights(self) -> dict[str, float]:
        """The environments to train on and their shares."""
        ids = [self.env] if isinstance(self.env, str) else self.env
        return weights_of(dict(zip(ids, self.env_weights, strict=True)) if self.env_weights else ids)

    @property
    def eval_weights(self) -> dict[str, float]:
        """The environments of the validation and their shares."""
        return weights_of(self.eval_env) if self.eval_env else self.train_weights

    @property
    def failures(self) -> FailurePolicy:
        """What becomes of environments that fail."""
        return FailurePolicy(
            self.env_timeout, self.env_retries, ErrorAction(self.env_failure), self.max_env_failure_share
        )

    def import_modules(self) -> None:
        """Import what registers environments, and switch the run's plugins on.

        Raises:
            SettingsError: there is no such module.
            PluginError: there is no such plugin.
        """
        for module in self.modules:
            try:
                importlib.import_module(module)
            except ModuleNotFoundError as error:
                raise SettingsError(f"gem.modules: cannot import {module!r}: {error}") from error
        manager.enable(*self.plugins)

    def load_wrappers(self) -> list[Any]:
        """The wrappers themselves.

        Raises:
            SettingsError: one that cannot be found.
        """
        return [_load(path) for path in self.wrappers]

    def rollout(self, data: DictConfig, max_context_tokens: int) -> RolloutSettings:
        """How episodes become prompts; `data` is the section of that name."""
        return RolloutSettings(
            max_response_tokens=self.max_response_tokens,
            max_context_tokens=max_context_tokens,
            history=self.history,
            system_prompt=self.system_prompt,
            truncated_is_invalid=self.truncated_is_invalid,
            template_options=dict(data.get("apply_chat_template_kwargs") or {}),
        )


def _load(path: str) -> Any:
    module, colon, name = path.partition(":")
    try:
        if not colon:
            raise ImportError("it is not 'package.module:name'")
        found = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise SettingsError(f"gem.wrappers: cannot load {path!r}: {error}") from error
    if not callable(found):
        raise SettingsError(f"gem.wrappers: {path!r} is no function or class that takes an {Env.__name__}")
    return found
