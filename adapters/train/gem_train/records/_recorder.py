"""Writes the records of a run."""

from __future__ import annotations

import logging
import os
import platform
import socket
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from gem_core.episode import Episode, Run, Source
from gem_core.errors import printable
from gem_core.hookspecs import hookimpl
from gem_core.seeding import derive_seed
from gem_core.update import Update
from gem_train.records._content import packed_episode, packed_training, summary_fields
from gem_train.records._frames import FrameWriter
from gem_train.records._token_texts import Decoder, token_text
from gem_train.rollout._recorder import as_utf8, encoded_plain
from gem_train.rollout._secrets import without_secrets

Detail = Literal["none", "summary", "full"]
"""What is recorded: nothing; rewards, outcomes and advantages; or also texts, tokens and numbers per token."""

SUFFIX = ".gemrec"

_log = logging.getLogger(__name__)


class RunRecorder:
    """Writes the episodes and updates of this process to its own file, through the hooks; see `docs/records.md`.

    What cannot be written, for example because the disk is full, is logged once. Readers say how much is missing. The
    run continues. Passwords, keys and logins in settings are hidden; see `without_secrets`.

    Args:
        folder: the folder of the run. Other processes write to it, too.
        settings: the settings of the run.
        versions: versions of the distributions that take part.
        detail: how much is recorded.
        share: share of the tasks that are recorded, from 0 to 1. A recorded task has all its episodes.
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
        self.folder = Path(folder)
        self.tokenizer = tokenizer
        self.detail = detail
        self._share = share
        self._start = {
            "settings": without_secrets(dict(settings or {})),
            "versions": dict(versions or {}),
            "detail": detail,
            "share": share,
            "python": platform.python_version(),
        }
        self._warned = False
        self._open()

    @hookimpl
    def gem_rollout_start(self, run: Run) -> None:
        """Write what the rollout is for."""
        self._write(lambda: ({"kind": "rollout", "id": run.id, "label": run.label}, _described(run)))

    @hookimpl
    def gem_rollout_end(self, run: Run, error: BaseException | None) -> None:
        """Write that the rollout has ended, so that readers can tell a run that was killed."""
        self._write(lambda: ({"kind": "rollout_end", "id": run.id, "error": error and as_utf8(str(error))}, b""))

    @hookimpl
    def gem_episode_end(self, episode: Episode) -> None:
        """Write an episode."""
        if self._chosen(episode.task_id):
            self._write(lambda: self._episode_frame(episode))

    @hookimpl
    def gem_update(self, update: Update) -> None:
        """Write what an update trained on."""
        self._write(lambda: self._update_frame(update))

    @hookimpl
    def gem_metrics(self, source: Source, step: int, metrics: Mapping[str, float]) -> None:
        """Write the metrics of an update of a training."""
        if source.kind == "training":
            numbers = {name: float(value) for name, value in metrics.items()}
            self._write(lambda: ({"kind": "metrics", "step": step, "metrics": numbers}, b""))

    def close(self) -> None:
        """Close the file. Safe to call twice."""
        self._writer.close()

    def _open(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._frames = 0
        self._known: set[int] = set()
        self.path = self.folder / f"{socket.gethostname()}-{self._process}-{time.time_ns():x}{SUFFIX}"
        self._writer = FrameWriter(self.path)
        self._writer.write({"kind": "start"}, encoded_plain({**self._start, "time": time.time()}))

    def _chosen(self, task_id: int) -> bool:
        # The same tasks in all processes, whatever their number.
        return self._share >= 1 or derive_seed(0, task_id) % (1 << 20) < self._share * (1 << 20)

    def _write(self, describe: Callable[[], tuple[dict[str, Any], bytes]]) -> None:
        """Write a frame with its number. A frame that fails leaves a gap in the numbers, which readers find."""
        try:
            if os.getpid() != self._process:  # a fork writes to its own file
                self._open()
            with self._lock:
                self._frames += 1
                head, body = describe()
                self._writer.write({**head, "n": self._frames}, body)
        except Exception as error:
            if not self._warned:
                trace = printable("".join(traceback.format_exception(error)))
                _log.warning("%s lacks records, and the run continues: %s\n%s", self.path, printable(str(error)), trace)
            self._warned = True

    def _episode_frame(self, episode: Episode) -> tuple[dict[str, Any], bytes]:
        full = self.detail == "full"
        if full and self.tokenizer is not None:
            self._write_texts(self.tokenizer, episode)
        head = {"kind": "episode", "rollout": episode.run, **summary_fields(episode)}
        if not full:
            del head["unread"]  # a text
        return head, packed_episode(episode, full=full)

    def _update_frame(self, update: Update) -> tuple[dict[str, Any], bytes]:
        kept = np.array([self._chosen(task_id) for task_id in update.task_id.tolist()], dtype=np.bool_)
        turns = np.flatnonzero(kept)[np.argsort(update.episode[kept], kind="stable")]
        bounds = np.searchsorted(update.episode[turns], np.arange(len(update.episodes) + 1)).tolist()
        # An episode without turns has no task here.
        own = [part for part in enumerate(pairwise(bounds)) if part[1][0] < part[1][1] or self._share >= 1]
        bodies = [packed_training(update, turns[first:last], full=self.detail == "full") for _, (first, last) in own]
        head = {
            "kind": "update",
            "number": update.number,
            "version": update.version,
            "rank": update.rank,
            "ranks": update.ranks,
            "episodes": [as_utf8(update.episodes[index]) for index, _ in own],
            "sizes": [len(body) for body in bodies],
        }
        return head, b"".join(bodies)

    def _write_texts(self, tokenizer: Decoder, episode: Episode) -> None:
        """Write the texts of tokens that no earlier episode had."""
        found = [np.unique(np.asarray(sequence.ids)).tolist() for sequence in episode.sequences]
        new = sorted({one for ids in found for one in ids} - self._known)
        if new:
            texts = [token_text(tokenizer, one) for one in new]
            self._writer.write({"kind": "texts"}, msgspec.msgpack.encode({"ids": new, "texts": texts}))
            self._known.update(new)


def _described(run: Run) -> bytes:
    return encoded_plain(without_secrets(msgspec.structs.asdict(run)))
