"""Composes verl's configuration and starts verl with it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import hydra
import ray
from hydra.core.config_store import ConfigStore
from omegaconf import DictConfig
from verl.trainer.main_ppo import TaskRunnerV1, run_ppo
from verl.trainer.ppo.utils import need_reference_policy
from verl.utils.config import validate_config
from verl.utils.device import auto_set_device

from gem_core.errors import GemError
from gem_core.registry import advantage_spec
from gem_train.cleanup import clean_up_after_this_process
from gem_train.ray_errors import own_errors
from gem_train.report import curve_at_the_end
from gem_verl.checks import check
from gem_verl.settings import VerlSettings

CONFIG = "gem"
"""Name of the primary configuration."""
ConfigStore.instance().store("gem_settings", VerlSettings.defaults())


def compose(overrides: Sequence[str] = ()) -> DictConfig:
    """verl's configuration with the section `gem`.

    Args:
        overrides: as on the command line, for example `["gem.env=game:Corridor-v0"]`.
    """
    with hydra.initialize_config_module("gem_verl.conf", version_base=None):
        return hydra.compose(CONFIG, overrides=[*overrides])


def train(config: DictConfig) -> None:
    """Train as verl's `main_ppo` does. Starts Ray unless the program has started it.

    Raises:
        SettingsError: settings that cannot work, or that would silently change the algorithm.
        NotFoundError, EnvKwargsError, MissingExtraError, EnvError: as `gem_core.make`.
        AdapterError: an environment failure that must stop the run.
    """
    settings = check(config)
    clean_up_after_this_process()
    auto_set_device(config)
    validate_config(
        config,
        use_reference_policy=need_reference_policy(config),
        use_critic=advantage_spec(config.algorithm.adv_estimator).needs_values,
    )
    with curve_at_the_end(settings.report, ", ".join(settings.train_weights)), own_errors():
        run_ppo(config, task_runner_class=TaskRunner)


@hydra.main(config_path="conf", config_name=CONFIG, version_base=None)
def command(config: DictConfig) -> None:
    """The command line."""
    try:
        train(config)
    except GemError as error:
        sys.exit(f"{type(error).__name__}: {error}")


# The class under verl's `@ray.remote`.
_TaskRunner: Any = TaskRunnerV1.__ray_metadata__.modified_class  # pyright: ignore[reportAttributeAccessIssue]


@ray.remote
class TaskRunner(_TaskRunner):
    """verl's task runner, with the trainer `gem` registered."""

    def run(self, config: DictConfig) -> None:
        """Train in this process."""
        import gem_verl._trainer  # noqa: F401  registers the trainer; here only, because it takes 150 MB

        if not config.actor_rollout_ref.hybrid_engine:
            from verl.trainer.ppo.v1.trainer_base import TRAINER_REGISTRY

            from gem_verl._separate import SeparateTurnTrainer

            TRAINER_REGISTRY[config.trainer.v1.trainer_mode] = SeparateTurnTrainer
        super().run(config)
