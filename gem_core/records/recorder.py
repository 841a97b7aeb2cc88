"""Writes the records of a run."""

from __future__ import annotations

import logging
import platform
import socket
import threading
import time
from collections.abc import Mapping
from itertools import pairwise
from os import getpid
from pathlib import Path
from typing import Any, Literal, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from gem_core.episode import Episode, Run
from gem_core.hookspecs import hookimpl
from gem_core.records.content import packed_episode, packed_training, summary_fields
from gem_core.records.frames import FrameWriter
from gem_core.rollout.recorder import as_utf8, encoded_plain
from gem_core.seeding import derive_seed
from gem_core.update import Update

Detail = Literal["none", "summary", "full"]
"""How much is recorded: `summary` is rewards, ends and advantages; `full` adds texts, tokens and numbers per token."""

SUFFIX = ".gem"

_log = logging.getLogger(__name__)


class Decoder(Protocol):
    """The part of a tokenizer that turns ids into text."""

    def decode(self, token_ids: Any, /, **kwargs: Any) -> Any:
        """Token ids to text."""
        ...


class RunRecorder:
    """Writes episodes and updates of this process to a file of its own, through the hooks; see `docs/records.md`.

    A frame that cannot be written, for example because the disk is full, is counted in the file and logged once, and
    the run continues.

    Args:
        folder: the folder of the run; other processes write to it, too.
        settings: the settings of the run.
        versions: versions of the distributions that take part.
        detail: how much is recorded.
        share: share of the tasks that are recorded, from 0 to 1. All episodes of a task are, or none.
        tokenizer: of the policy, for the text of each token.

    Raises:
        OSError: the file cannot be written.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        settings: Mapping[str, Any] | None = None,
        versions: Mapping[str, str] | None = None,
        detail: Literal["summary", "full"] = "full",
        share: float = 1.0,
        tokenizer: Decoder | None = None,
    ) -> None:
        self.path = Path(folder) / f"{socket.gethostname()}-{getpid()}-{time.time_ns():x}{SUFFIX}"
        self.tokenizer = tokenizer
        self._whole = detail == "full"
        self._share = share
        self._seen = np.zeros(0, dtype=np.bool_)
        self._lost = 0
        self._lock = threading.Lock()
        self._writer = FrameWriter(self.path)
        started = {"detail": detail, "share": share, "python": platform.python_version(), "time": time.time()}
        plain = {"settings": dict(settings or {}), "versions": dict(versions or {}), **started}
        self._write({"kind": "start"}, encoded_plain(plain))

    @hookimpl
    def gem_rollout_start(self, run: Run) -> None:
        """Note what the rollout is for."""
        self._write({"kind": "rollout", "id": run.id, "label": run.label}, encoded_plain(msgspec.structs.asdict(run)))

    @hookimpl
    def gem_episode_end(self, episode: Episode) -> None:
        """Write an episode, after the texts of tokens that no earlier one had."""
        if not self._chosen(episode.group):
            return
        with self._lock:
            if self._whole and self.tokenizer is not None:
                self._write_texts(self.tokenizer, episode)
            head = {"kind": "episode", "rollout": episode.run, **summary_fields(episode)}
            self._write(head, packed_episode(episode, whole=self._whole))

    @hookimpl
    def gem_update(self, update: Update) -> None:
        """Write the training on the episodes of an update."""
        order = np.argsort(update.episode, kind="stable")
        bounds = np.searchsorted(update.episode[order], np.arange(len(update.episodes) + 1))
        bodies = [
            packed_training(update, order[first:last], whole=self._whole) for first, last in pairwise(bounds.tolist())
        ]
        head = {
            "kind": "update",
            "number": update.number,
            "rank": update.rank,
            "ranks": update.ranks,
            "episodes": list(update.episodes),
            "sizes": [len(body) for body in bodies],
        }
        self._write(head, b"".join(bodies))

    def close(self) -> None:
        """Close the file. Safe to call twice."""
        self._writer.close()

    def _chosen(self, task: int) -> bool:
        # The same tasks in all processes, whatever their number.
        return self._share >= 1 or derive_seed(0, task) % (1 << 20) < self._share * (1 << 20)

    def _write_texts(self, tokenizer: Decoder, episode: Episode) -> None:
        for sequence in episode.sequences:
            ids = self._unseen(np.asarray(sequence.ids, dtype=np.int64)).tolist()
            if ids:
                texts = [as_utf8(str(tokenizer.decode([one], skip_special_tokens=False))) for one in ids]
                self._write({"kind": "texts"}, msgspec.msgpack.encode({"ids": ids, "texts": texts}))

    def _unseen(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        ids = ids[ids >= 0]
        if ids.size and ids.max() >= len(self._seen):
            self._seen = np.concatenate([self._seen, np.zeros(ids.max() + 1 - len(self._seen), dtype=np.bool_)])
        found = np.unique(ids[~self._seen[ids]])
        self._seen[found] = True
        return found

    def _write(self, head: Mapping[str, Any], body: bytes) -> None:
        try:
            if self._lost:
                self._writer.write({"kind": "lost", "frames": self._lost})
                self._lost = 0
            self._writer.write(head, body)
        except OSError as error:
            if not self._lost:
                _log.warning("%s cannot be written: %s; the run continues without these records", self.path, error)
            self._lost += 1
