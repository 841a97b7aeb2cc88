"""Composes ROLL's configuration and trains with it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import hydra
from hydra.core.config_store import ConfigStore
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf

from gem_core.errors import GemError
from gem_roll._completion import completed
from gem_roll.checks import check, check_apart, check_devices, check_keys, check_model
from gem_roll.settings import ROLLSettings
from gem_train.cleanup import clean_up_after_this_process
from gem_train.ray_errors import own_errors

if TYPE_CHECKING:
    from gem_roll._config import GemConfig


def compose(config: str | Path | Mapping[str, Any], overrides: Sequence[str] = ()) -> DictConfig:
    """ROLL's configuration with the section `gem`.

    Args:
        config: the path of a yaml file, or its content.
        overrides: as on the command line, for example `["gem.seed=1", "+gem.row=turn"]`.
    """
    if isinstance(config, Mapping):
        with hydra.initialize(config_path=None, version_base=None):
            ConfigStore.instance().store("gem", OmegaConf.create(dict(config)))
            return hydra.compose("gem", overrides=[*overrides])
    path = Path(config).resolve()
    with hydra.initialize_config_dir(str(path.parent), version_base=None):
        return hydra.compose(path.stem, overrides=[*overrides])


def train(config: DictConfig) -> None:
    """Train as ROLL's `start_agentic_pipeline.py` does. Starts Ray unless the program has started it.

    Raises:
        SettingsError: settings that cannot work, or that would silently change the algorithm.
        NotFoundError, EnvKwargsError, MissingExtraError, EnvError: as `gem_core.make`, or for environment failures that
            must stop the run.
    """
    given = cast("dict[str, Any]", OmegaConf.to_container(config, resolve=True))
    settings = check(given)
    check_devices(given)

    import ray
    from dacite import from_dict
    from roll.distributed.scheduler.initialize import init

    from gem_roll._config import GemConfig
    from gem_roll._pipeline import TurnPipeline

    check_keys(given, GemConfig.__dataclass_fields__)
    clean_up_after_this_process()
    whole = from_dict(data_class=GemConfig, data=completed(given, settings))
    gpus: list[Any] = [cluster.device_mapping for cluster in (whole.actor_train, whole.actor_infer)]
    check_apart(settings, *gpus)
    _check_model(settings, given, whole)
    if not ray.is_initialized():
        init()
    with own_errors():
        TurnPipeline(whole).run()


def _check_model(settings: ROLLSettings, given: Mapping[str, Any], whole: GemConfig) -> None:
    from roll.models.model_providers import default_tokenizer_provider
    from roll.utils.checkpoint_manager import download_model
    from transformers import GenerationConfig

    arguments: Any = whole.actor_infer.model_args
    folder: Any = download_model(arguments.model_name_or_path)
    generation_config = None
    with suppress(OSError):  # it has none
        generation_config = GenerationConfig.from_pretrained(folder)
    check_model(settings, given, default_tokenizer_provider(model_args=arguments), generation_config)


def command(arguments: Sequence[str]) -> None:
    """The command line: a yaml file and overrides."""
    if not arguments or arguments[0] in ("-h", "--help"):
        sys.exit(
            "python -m gem_roll CONFIG.yaml [key=value ...]: ROLL's agentic pipeline with environments; "
            "adapters/roll/README.md"
        )
    try:
        train(compose(arguments[0], arguments[1:]))
    except (GemError, HydraException) as error:
        sys.exit(f"{type(error).__name__}: {error}")
