"""Where the turns of a batch stand in its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gem_core.adapters.rows import TurnSpan


@dataclass(frozen=True)
class Layout:
    """One entry per turn, in any order; N turns in all."""

    row: NDArray[np.int64]
    """(N,), the row with the turn's response."""
    start: NDArray[np.int64]
    """(N,), the first of its response tokens in that row."""
    end: NDArray[np.int64]
    """(N,), one past the last."""
    turn: NDArray[np.int64]
    """(N,), its position in the episode."""
    episode: NDArray[np.int64]
    """(N,), the episode."""
    group: NDArray[np.int64]
    """(N,), the task."""

    @classmethod
    def of(cls, keys: Sequence[str], spans: Sequence[Sequence[TurnSpan]]) -> Layout:
        """The layout of a batch.

        Args:
            keys: verl's name of each row, `<task>_<episode of the task>_<row of the episode>`.
            spans: the turns in each row.
        """
        episodes: dict[str, int] = {}
        groups: dict[str, int] = {}
        entries: list[tuple[int, ...]] = []
        for row, (key, turns) in enumerate(zip(keys, spans, strict=True)):
            session = key.rpartition("_")[0]
            episode = episodes.setdefault(session, len(episodes))
            group = groups.setdefault(session.rpartition("_")[0], len(groups))
            entries += [(row, start, end, turn, episode, group) for turn, start, end in turns]
        return cls(*np.array(entries, dtype=np.int64).reshape(-1, 6).T)

    def __len__(self) -> int:
        """The number N of turns."""
        return len(self.row)

    def sums(self, table: NDArray[np.float64]) -> NDArray[np.float64]:
        """The sum over each turn's tokens of a (rows, width) table: (N,)."""
        totals = np.pad(np.cumsum(table, axis=1), ((0, 0), (1, 0)))
        return totals[self.row, self.end] - totals[self.row, self.start]

    def spread(self, numbers: NDArray[np.float64], shape: tuple[int, int]) -> NDArray[np.float32]:
        """Each turn's number on its own tokens, 0 elsewhere: a table of that shape."""
        table = np.zeros(shape, dtype=np.float32)
        for row, start, end, number in zip(self.row, self.start, self.end, numbers, strict=True):
            table[row, start:end] = number
        return table


def even_order(trains: Sequence[bool], ranks: int, updates: int) -> list[int]:
    """Rows in an order in which every update of every rank has as many rows that train something, give or take one.

    Each rank takes an equal part of the rows, and cuts it into equal parts for its updates. verl puts the rows with
    which it fills a batch up at the end, so that the last updates would be empty and the others too large.

    Args:
        trains: for each row whether it has a turn; as many rows as divide by `ranks * updates`.
        ranks: how many parts the rows are cut into first; which rows are in which part stays.
        updates: how many parts each rank's rows are cut into.

    Returns:
        The positions of the rows.
    """
    size = len(trains) // ranks
    order: list[int] = []
    for start in range(0, len(trains), size):
        dealt = sorted(range(start, start + size), key=lambda row: not trains[row])
        order += [row for update in range(updates) for row in dealt[update::updates]]
    return order
