"""Records of a training: episodes from the processes that play, updates from those that train."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from gem_core.errors import printable
from gem_core.plugins import manager
from gem_train._run_versions import versions_of
from gem_train.records import RunRecorder, Update
from gem_train.settings import RunSettings
from gem_train.turn_table import FloatArray, TurnTable

_log = logging.getLogger(__name__)


class _Recording(NamedTuple):
    settings: dict[str, Any]
    folder: Path
    recorder: RunRecorder


_current: _Recording | None = None


def record(settings: RunSettings, tokenizer: Any = None) -> None:
    """Record the episodes and updates of this process from now on as the settings say, and no longer as others said.

    Args:
        settings: the settings of the run.
        tokenizer: the tokenizer of the policy, in a process that plays.

    Raises:
        SettingsError: there is no folder for the records.
        OSError: the file cannot be written.
    """
    global _current
    folder = settings.records
    if folder is None:
        stop_recording()
        return
    described = settings.described()
    if _current is not None and (described, folder.resolve()) != _current[:2]:
        stop_recording()
    if _current is None:
        detail = cast("Literal['summary', 'full']", settings.record)
        recorder = RunRecorder(
            folder.resolve(),
            settings=described,
            versions=versions_of(settings.adapter),
            detail=detail,
            share=settings.record_share,
        )
        manager.register(recorder)
        _current = _Recording(described, folder.resolve(), recorder)
    if tokenizer is not None:
        _current.recorder.tokenizer = tokenizer


def stop_recording() -> None:
    """End what `record` began in this process. Safe to call twice."""
    global _current
    if _current is not None:
        manager.unregister(_current.recorder)
        _current.recorder.close()
        _current = None


def needs_token_values() -> bool:
    """Whether somebody who listens to `gem_update` reads numbers per token."""
    recorder = _current.recorder if _current else None
    others = [one for one in manager.listeners("gem_update") if one is not recorder]
    return bool(others) or (recorder is not None and recorder.detail == "full")


@contextmanager
def log_exceptions() -> Generator[None]:
    """Log an error of recording; it must not fail a run."""
    try:
        yield
    except Exception:
        _log.error("an update was not recorded; the run continues\n%s", printable(traceback.format_exc()))


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
    version: int | None = None,
) -> None:
    """Tell `gem_update` what a process trained on. Raises nothing.

    Args:
        number: the update, counted from 1.
        turns: the turns of the update, N in all.
        episodes: `Episode.id` of each episode with turns, in the order of the numbers in `turns.episode`.
        advantages: the tables (rows, width) of the loss. The number at each turn's first token counts.
        returns: (N,), returns-to-go.
        logprobs, entropies: tables of the trainer, if there are any.
        rank, ranks: the process that trains, and how many do.
        version: updates of the policy before this one, if `number` counts batches; see `Update`.
    """
    if not manager.listens("gem_update"):
        return
    tokens = needs_token_values()
    with log_exceptions():
        update = Update(
            number=number,
            episodes=episodes,
            episode=turns.episode,
            position=turns.position,
            task_id=turns.task_id,
            advantage=turns.firsts([np.asarray(table, dtype=np.float64) for table in advantages]),
            return_to_go=returns,
            logprobs=turns.tokens(logprobs) if logprobs is not None and tokens else None,
            entropies=turns.tokens(entropies) if entropies is not None and tokens else None,
            rank=rank,
            ranks=ranks,
            version=version,
        )
        manager.notify("gem_update", update=update)
