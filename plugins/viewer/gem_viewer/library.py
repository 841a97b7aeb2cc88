"""The runs that the server shows, and what a page has not seen of them yet."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from gem_core.errors import RecordsError
from gem_viewer.columns import columns
from gem_viewer.page import described, names_of
from gem_viewer.shards import BLOCK, WIDE, TokenTable, details_of, token_arrays

if TYPE_CHECKING:
    from gem_core.records import RecordedEpisode, RecordedSummary, Records


class Seen(NamedTuple):
    """What a page has of a run."""

    episodes: int
    changes: int


class Run:
    """A run that may still be written.

    The records of several files have another order after each refresh; here an episode keeps its place.

    Args:
        records: the run.
        name: what the page calls it.
    """

    def __init__(self, records: Records, name: str) -> None:
        self._records = records
        self._name = name
        self._ids: list[str] = []
        self._indices: dict[str, int] = {}
        self._updates: list[int | None] = []
        self._changes: list[tuple[int, int]] = []
        """Place and update of episodes that were trained on after they were first seen."""
        self._failure: str | None = None
        self.table = TokenTable(lambda: records.texts)
        self._take()

    def refresh(self) -> None:
        """Read what was written meanwhile."""
        try:
            changed, self._failure = self._records.refresh(), None
        except RecordsError as error:
            changed, self._failure = False, str(error)
        if changed:
            self._take()

    def news(self, seen: Seen) -> dict[str, Any]:
        """What is not seen yet: the run's description, `columns` of later episodes, `changes` of earlier ones."""
        later = [self._summary(one) for one in self._ids[seen.episodes :]]
        news = described(self._records, self._name)
        news["gaps"] += [self._failure] if self._failure else []
        changes = [one for one in self._changes[seen.changes :] if one[0] < seen.episodes]
        return {**news, "columns": columns(later), "changes": changes, "seen": Seen(len(self._ids), len(self._changes))}

    def episodes(self, start: int, end: int) -> list[RecordedEpisode]:
        """The episodes of these places. Raises `RecordsError` if they are damaged."""
        return [self._records.episode(self._indices[one]) for one in self._ids[start:end]]

    def _take(self) -> None:
        summaries = self._records.summaries
        self._indices = {one.id: index for index, one in enumerate(summaries)}
        for place, name in enumerate(self._ids):
            update = self._summary(name).update
            if update is not None and update != self._updates[place]:
                self._updates[place] = update
                self._changes.append((place, update))
        known = set(self._ids)
        new = [one for one in summaries if one.id not in known]
        self._ids += [one.id for one in new]
        self._updates += [one.update for one in new]

    def _summary(self, name: str) -> RecordedSummary:
        return self._records.summaries[self._indices[name]]


class Library:
    """All runs. Threads may call it.

    Args:
        opened: the runs.
    """

    def __init__(self, opened: Sequence[Records]) -> None:
        self._runs = [Run(records, name) for records, name in zip(opened, names_of(opened), strict=True)]
        self._lock = threading.Lock()

    def news(self, seen: Sequence[Seen]) -> list[dict[str, Any]]:
        """What is not seen yet of each run; a page that has seen nothing gives nothing."""
        with self._lock:
            for run in self._runs:
                run.refresh()
            padded = [*seen, *[Seen(0, 0)] * (len(self._runs) - len(seen))]
            return [run.news(one) for run, one in zip(self._runs, padded, strict=False)]

    def details(self, run: int, block: int) -> list[dict[str, Any]]:
        """The details of a block of episodes. Raises `RecordsError` where they are damaged."""
        with self._lock:
            episodes = self._runs[run].episodes(block * BLOCK, (block + 1) * BLOCK)
        return [details_of(one, WIDE) for one in episodes]

    def tokens(self, run: int, place: int) -> bytes:
        """The token arrays of an episode; empty where no tokens are known.

        Raises:
            RecordsError: the episode is damaged.
            LookupError: there is none at this place.
        """
        with self._lock:
            (one,) = self._runs[run].episodes(place, place + 1) or [None]
            if one is None:
                raise LookupError(f"run {run} has no episode {place}")
            places = self._runs[run].table.places(one.episode)
        return token_arrays(one, places, WIDE) if places else b""

    def table(self, run: int, start: int) -> dict[str, list[Any]]:
        """The run's table of tokens from this place on."""
        with self._lock:
            return self._runs[run].table.entries(start)
