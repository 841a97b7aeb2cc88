"""Records of a training: episodes from the processes that play, updates from those that train."""

from __future__ import annotations

import functools
import importlib.metadata
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from gem_core.plugins import manager
from gem_core.records import RunRecorder, Update
from gem_core.training.settings import RunSettings
from gem_core.training.turn_table import FloatArray, TurnTable

_DISTRIBUTIONS = ("gem-core", "torch", "transformers", "vllm", "trl", "verl", "openrlhf", "oat-llm", "ray")


def record(settings: RunSettings, tokenizer: Any = None) -> None:
    """Record the episodes and updates of this process from now on, if the settings say so. Safe to call again.

    Args:
        settings: the settings of the run.
        tokenizer: the tokenizer of the policy, in a process that plays.

    Raises:
        SettingsError: there is no folder for the records.
        OSError: the file cannot be written.
    """
    folder = settings.records
    if folder is None:
        return
    detail = cast("Literal['summary', 'full']", settings.record)
    recorder = _recorder(folder.resolve(), detail, settings.record_share, _Settings(settings))
    if tokenizer is not None:
        recorder.tokenizer = tokenizer


@dataclass(frozen=True)
class _Settings:
    """Settings that do not count as an argument of the cache."""

    values: RunSettings = field(compare=False)


@functools.cache
def _recorder(folder: Path, detail: Literal["summary", "full"], share: float, settings: _Settings) -> RunRecorder:
    recorder = RunRecorder(
        folder, settings=settings.values.described(), versions=_versions(), detail=detail, share=share
    )
    manager.register(recorder)
    return recorder


def _versions() -> dict[str, str]:
    found: dict[str, str] = {}
    for name in _DISTRIBUTIONS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def report_update(
    number: int,
    turns: TurnTable,
    episodes: Sequence[str],
    *,
    advantages: Sequence[NDArray[np.floating]],
    returns: FloatArray,
    logprobs: Sequence[NDArray[np.floating]] | None = None,
    entropies: Sequence[NDArray[np.floating]] | None = None,
    rank: int = 0,
    ranks: int = 1,
) -> None:
    """Tell `gem_update` what a process trained on.

    Args:
        number: the update, counted from 1.
        turns: the turns of the batch, N in all.
        episodes: `Episode.id` of each episode, in the order of the numbers in `turns.episode`.
        advantages: the tables (rows, width) of the loss, from which each turn's first token is read.
        returns: (N,), returns-to-go.
        logprobs, entropies: tables of the trainer, if there are any.
        rank, ranks: the process that trains, and how many do.
    """
    if not manager.listens("gem_update"):
        return
    update = Update(
        number=number,
        episodes=episodes,
        episode=turns.episode,
        position=turns.position,
        advantage=turns.firsts([np.asarray(table, dtype=np.float64) for table in advantages]),
        return_to_go=returns,
        logprobs=None if logprobs is None else turns.tokens(logprobs),
        entropies=None if entropies is None else turns.tokens(entropies),
        rank=rank,
        ranks=ranks,
    )
    manager.notify("gem_update", update=update)
