"""The runs that the server shows, and what a page has not seen of them yet."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec

from gem_core.errors import RecordsError
from gem_viewer._columns import columns
from gem_viewer._page import described, metric_columns, metric_lines, names_of
from gem_viewer._reading import block_of, unreadable_gaps
from gem_viewer._shards import BLOCK, TokenTable, shard

if TYPE_CHECKING:
    from gem_train.records import Records


_LEVEL = 1  # of compression: the bytes stay on this machine
_KEPT = 8  # shards of a run
_MAX_NEW = 20_000
"""Episodes, changes and steps of a run in one answer; the page asks for the rest."""


class Seen(NamedTuple):
    """What a page has of a run."""

    episodes: Annotated[int, msgspec.Meta(ge=0)]
    changes: Annotated[int, msgspec.Meta(ge=0)]
    metrics: Annotated[int, msgspec.Meta(ge=0)]


class ViewedRun:
    """A run that may still be written.

    Args:
        records: the run.
        name: what the page calls it.
    """

    def __init__(self, records: Records, name: str) -> None:
        self._records = records
        self._name = name
        self._updates: list[int | None] = []
        self._changes: list[tuple[int, int]] = []
        """Place and update of episodes that were trained on after they were first seen."""
        self._metrics: dict[float | None, dict[str, float | None]] = {}
        self._steps: list[float | None] = []
        """The step of each line of metrics that came or changed, in that order."""
        self._failure: str | None = None
        self._unreadable: dict[int, str] = {}
        self._shards: dict[int, list[bytes]] = {}
        self.table = TokenTable(records.texts)
        self._take()

    def refresh(self) -> None:
        """Read what was written meanwhile."""
        try:
            changed, self._failure = self._records.refresh(), None
        except RecordsError as error:
            changed, self._failure = False, str(error)
        if changed:
            self._shards.clear()  # episodes may have been trained on meanwhile
            self.table.texts = self._records.texts
            self._take()
        self._take_metrics()  # they have a file of their own

    def news(self, seen: Seen) -> dict[str, Any]:
        """What is not seen yet: the run's description, `columns` of later episodes, `changes` of earlier ones, and
        `metrics` of the updates that came or changed. `more`: that is not all.
        """
        summaries = self._records.summaries
        news = described(self._records, self._name)
        news["gaps"] += [*([self._failure] if self._failure else []), *unreadable_gaps(self._unreadable)]
        everything = Seen(len(summaries), len(self._changes), len(self._steps))
        now = Seen(*(min(whole, had + _MAX_NEW) for whole, had in zip(everything, seen, strict=True)))
        changes = [one for one in self._changes[seen.changes : now.changes] if one[0] < seen.episodes]
        steps = dict.fromkeys(self._steps[seen.metrics : now.metrics])
        return {
            **news,
            "columns": columns(summaries[seen.episodes : now.episodes]),
            "changes": changes,
            "metrics": metric_columns([self._metrics[step] for step in steps]),
            "seen": now,
            "more": now != everything,
        }

    def shard(self, block: int) -> list[bytes]:
        """The parts of a shard. Raises `LookupError` where there is none."""
        if not 0 <= block * BLOCK < len(self._records.summaries):
            raise LookupError(f"block {block}")
        if block not in self._shards:
            episodes = block_of(self._records, block * BLOCK, self._unreadable)
            while len(self._shards) >= _KEPT:
                del self._shards[next(iter(self._shards))]
            self._shards[block] = shard(episodes, self.table, _LEVEL)
        return self._shards[block]

    def _take(self) -> None:
        summaries = self._records.summaries
        for place, (before, one) in enumerate(zip(self._updates, summaries, strict=False)):
            if one.update is not None and one.update != before:
                self._updates[place] = one.update
                self._changes.append((place, one.update))
        self._updates += [one.update for one in summaries[len(self._updates) :]]

    def _take_metrics(self) -> None:
        for line in metric_lines(self._records):
            step = line["step"]
            if self._metrics.get(step) != line:
                self._metrics[step] = line
                self._steps.append(step)


class Library:
    """All runs. Threads may call it.

    Args:
        opened: the runs.
    """

    def __init__(self, opened: Sequence[Records]) -> None:
        self._runs = [ViewedRun(records, name) for records, name in zip(opened, names_of(opened), strict=True)]
        self._lock = threading.Lock()

    def news(self, seen: Sequence[Seen]) -> list[dict[str, Any]]:
        """What is not seen yet of each run; a page that has seen nothing gives nothing."""
        with self._lock:
            for run in self._runs:
                run.refresh()
            padded = [*seen, *[Seen(0, 0, 0)] * (len(self._runs) - len(seen))]
            return [run.news(one) for run, one in zip(self._runs, padded, strict=False)]

    def part(self, run: int, block: int, part: int) -> bytes:
        """A part of a shard, see `shards`.

        Raises:
            LookupError: there is none.
        """
        with self._lock:
            return self._runs[run].shard(block)[part]

    def table(self, run: int, start: int) -> dict[str, list[Any]]:
        """The run's table of tokens from this place on."""
        with self._lock:
            return self._runs[run].table.entries(start)
