"""The environments of a sampling process."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from gem_core.env import Env
from gem_core.plugins import manager
from gem_core.seeding import derive_seed
from gem_core.vector import make_vec
from gem_train._samples import SampleFolder, SampleWriter
from gem_train.recording import record
from gem_train.rollout import BatchCollector, EpisodeRunner, ImageReader, Policy, RolloutSettings
from gem_train.settings import RunSettings, Split


def build_runner(
    settings: RunSettings,
    split: Split,
    tokenizer: Any,
    rollout: RolloutSettings,
    max_concurrent: int,
    images: ImageReader | None = None,
    wrappers: Sequence[Callable[[Env], Env]] = (),
) -> EpisodeRunner:
    """The runner that all episodes of a process share, for training or for evaluation.

    Args:
        settings: the settings of the run.
        split: training or evaluation.
        tokenizer: the tokenizer of the policy.
        rollout: how episodes become prompts.
        max_concurrent: number of episodes at a time.
        images: see `EpisodeRunner`.
        wrappers: applied to each environment after those of the settings.

    Raises:
        NotFoundError, EnvKwargsError, MissingExtraError, EnvError, SettingsError: as `gem_core.make_vec`.
        TemplateError: the tokenizer cannot carry a conversation.
    """
    prepare_process(settings, tokenizer)
    return EpisodeRunner(
        settings.weights(split),
        tokenizer,
        rollout,
        seed=derive_seed(settings.seed, split),
        max_concurrent=max_concurrent,
        backend=settings.vector_backend,
        workers=settings.vector_workers,
        failures=settings.failures,
        env_kwargs=settings.kwargs_of(split),
        env_limits=settings.limits(split),
        wrappers=[*settings.load_wrappers(), *wrappers],
        label=split,
        images=images,
    )


def build_collector(
    settings: RunSettings,
    split: Split,
    tokenizer: Any,
    rollout: RolloutSettings,
    policy: Policy,
    *,
    width: int,
    group_size: int = 1,
    shard: tuple[int, int] = (0, 1),
    first_episode: int = 0,
    min_batch: int | None = None,
    wrappers: Sequence[Callable[[Env], Env]] = (),
    images: ImageReader | None = None,
) -> BatchCollector:
    """A collector for a process that plays in batches, for training or for evaluation.

    Args:
        settings: the settings of the run.
        split: training or evaluation.
        tokenizer: the tokenizer of the policy.
        rollout: how episodes become prompts.
        policy: samples the responses.
        width: number of environments of this process, a multiple of `group_size`.
        group_size: episodes per task.
        shard: `(number, count)` of this process among those that play. The environments share the tasks of all these
            processes by their weights.
        first_episode: number of batches played before this process started, for a resumed run.
        min_batch: see `BatchCollector`.
        wrappers: applied after those of the settings.
        images: see `BatchCollector`.

    Raises:
        NotFoundError, EnvKwargsError, MissingExtraError, EnvError, SettingsError, ValueError: as `gem_core.make_vec`.
        TemplateError: the tokenizer cannot carry a conversation.
    """
    prepare_process(settings, tokenizer)
    vec = make_vec(
        settings.weights(split),
        width,
        backend=settings.vector_backend,
        workers=settings.vector_workers,
        failures=settings.failures,
        seed=derive_seed(settings.seed, split),
        group_size=group_size,
        first_episode=first_episode,
        shard=shard,
        wrappers=[*settings.load_wrappers(), *wrappers],
        env_kwargs=settings.kwargs_of(split),
        env_limits=settings.limits(split),
    )
    return BatchCollector(
        vec,
        policy,
        tokenizer,
        rollout,
        min_batch=min_batch,
        group_filter=settings.group_filter if split == "train" else None,
        label=split,
        track=None,
        images=images,
    )


def prepare_process(settings: RunSettings, tokenizer: Any = None) -> None:
    """Import modules that register environments, enable the run's plugins, and record and sample episodes if asked to.

    Args:
        settings: the settings of the run.
        tokenizer: the tokenizer of the policy, in a process that plays; records have the text of each token.

    Raises:
        SettingsError, PluginError: as `RunSettings.import_modules`.
    """
    settings.import_modules()
    record(settings, tokenizer)
    if settings.track and settings.run_folder:
        _sample(settings.run_folder)


@functools.cache
def _sample(folder: str) -> None:
    manager.register(SampleWriter(SampleFolder(folder)))
