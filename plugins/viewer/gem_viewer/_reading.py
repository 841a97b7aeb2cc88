"""Reads the episodes of a shard, where some may be damaged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from gem_core.errors import RecordsError
from gem_viewer._shards import BLOCK, Unreadable

if TYPE_CHECKING:
    from gem_train.records import RecordedEpisode, Records


def block_of(records: Records, start: int, unreadable: dict[int, str]) -> Iterator[RecordedEpisode | Unreadable]:
    """The episodes of a shard, one at a time.

    Args:
        records: the run.
        start: the place of the first.
        unreadable: gets the places of those that are damaged, and what is wrong with them.
    """
    for index in range(start, min(start + BLOCK, len(records.summaries))):
        yield _read_episode(records, index, unreadable)


def unreadable_gaps(unreadable: Mapping[int, str]) -> list[str]:
    """What `block_of` found, as a sentence or none."""
    if not unreadable:
        return []
    count = len(unreadable)
    first = next(iter(unreadable.values()))
    return [f"{count} {'episode' if count == 1 else 'episodes'} cannot be read. The first: {first}"]


def _read_episode(records: Records, index: int, unreadable: dict[int, str]) -> RecordedEpisode | Unreadable:
    try:
        found = records.episode(index)
    except RecordsError as error:
        unreadable[index] = str(error)
        return Unreadable(str(error))
    unreadable.pop(index, None)  # it was being written
    return found
