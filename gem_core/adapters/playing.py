"""The environments of a process in which a framework samples."""

from __future__ import annotations

import functools
import os
import socket
from pathlib import Path
from typing import Any

from gem_core.adapters.settings import PlaySettings, Split
from gem_core.plugins import manager
from gem_core.rollout import EpisodeRunner, Recorder, RolloutSettings
from gem_core.seeding import derive_seed


def build_runner(
    settings: PlaySettings, split: Split, tokenizer: Any, rollout: RolloutSettings, max_concurrent: int
) -> EpisodeRunner:
    """The runner that all episodes of a process share, for training or for evaluation.

    Args:
        settings: the run's.
        split: which of the two.
        tokenizer: the policy's.
        rollout: how episodes become prompts.
        max_concurrent: episodes at once.

    Raises:
        NotFoundError, EnvKwargsError, MissingExtraError, EnvError, SettingsError: as `gem_core.make_vec`.
        TemplateError: the tokenizer cannot carry a conversation.
    """
    settings.import_modules()
    if settings.recording:
        _record(settings.recording)
    return EpisodeRunner(
        settings.weights(split),
        tokenizer,
        rollout,
        seed=derive_seed(settings.seed, split),
        max_concurrent=max_concurrent,
        backend=settings.vector_backend,
        workers=settings.vector_workers,
        failures=settings.failures,
        env_kwargs=settings.env_kwargs,
        wrappers=settings.load_wrappers(),
    )


@functools.cache
def _record(folder: str) -> None:
    # A file per process, as several write at once, on several machines.
    manager.register(Recorder(Path(folder) / f"{socket.gethostname()}-{os.getpid()}.jsonl"))
