"""Where the turns of a batch stand in its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gem_core.training.rows import TurnSpan


@dataclass(frozen=True)
class Layout:
    """One entry per turn, in any order; N turns in all."""

    row: NDArray[np.int64]
    """(N,), the row with the turn's response."""
    start: NDArray[np.int64]
    """(N,), the position of its first token in that row."""
    end: NDArray[np.int64]
    """(N,), one past the last."""
    turn: NDArray[np.int64]
    """(N,), its position in the episode."""
    episode: NDArray[np.int64]
    """(N,), the episode."""
    group: NDArray[np.int64]
    """(N,), the task."""

    @classmethod
    def of(cls, episodes: Sequence[str], tasks: Sequence[str], spans: Sequence[Sequence[TurnSpan]]) -> Layout:
        """The layout of a batch.

        Args:
            episodes, tasks: names of each row's episode and task.
            spans: the turns in each row.
        """
        numbers = {name: number for number, name in enumerate(dict.fromkeys(episodes))}
        groups = {name: number for number, name in enumerate(dict.fromkeys(tasks))}
        entries = [
            (row, start, end, turn, numbers[episode], groups[task])
            for row, (episode, task, turns) in enumerate(zip(episodes, tasks, spans, strict=True))
            for turn, start, end in turns
        ]
        columns = [*zip(*entries, strict=True)] or [()] * 6
        return cls(*(np.array(column, dtype=np.int64) for column in columns))

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
