"""Records of a training: episodes from the processes that play, updates from those that train."""

from __future__ import annotations

import functools
import importlib.metadata
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from gem_core.episode import EpisodeSummary
from gem_core.plugins import manager
from gem_core.records import RunRecorder, Update
from gem_core.training.settings import RunSettings
from gem_core.training.turn_table import FloatArray, TurnTable

_SECRET = re.compile(r"(^|api|[^a-z])(keys?|token|passwords?|passwd|secrets?)$")
"""Names of settings whose values are nobody else's business; `input_key` is one too many."""
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
        folder,
        settings=_without_secrets(settings.values.described()),
        versions=_versions(),
        detail=detail,
        share=share,
    )
    manager.register(recorder)
    return recorder


def _without_secrets(value: Any) -> Any:
    """The same without what is under a secret name, however deep."""
    if isinstance(value, Mapping):
        items = cast("Mapping[Any, Any]", value).items()
        return {name: _without_secrets(one) for name, one in items if not _SECRET.search(str(name).lower())}
    if isinstance(value, list):
        return [_without_secrets(one) for one in cast("list[Any]", value)]
    return value


def _versions() -> dict[str, str]:
    found: dict[str, str] = {}
    for name in _DISTRIBUTIONS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def episode_ids(turns: TurnTable, summaries: Sequence[EpisodeSummary | None]) -> list[str]:
    """`Episode.id` of each episode of a batch: first by their numbers in `turns`, then those without turns.

    Args:
        turns: the turns of the batch, whose names of episodes are indices of `summaries`.
        summaries: of each episode; `None` for one that was dropped.
    """
    ids = {number: one.id for number, one in enumerate(summaries) if one is not None}
    return [ids[cast("int", number)] for number in dict.fromkeys([*turns.names, *ids])]


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
        episodes: `Episode.id` of each episode, in the order of the numbers in `turns.episode`; see `episode_ids`.
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
