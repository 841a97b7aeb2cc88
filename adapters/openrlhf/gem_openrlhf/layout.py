"""The turns of a batch, and where they stand in what OpenRLHF trains on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gem_core.training.rows import TurnSpan
from gem_openrlhf.rows import Played, Row


@dataclass(frozen=True)
class Turns:
    """The N turns of a batch, episode by episode."""

    rewards: NDArray[np.float64]
    """(N,), the environment's."""
    truncated: NDArray[np.bool_]
    """(N,), whether the token limit cut off the response."""
    turn: NDArray[np.int64]
    """(N,), its position in the episode."""
    episode: NDArray[np.int64]
    """(N,), the episode."""
    group: NDArray[np.int64]
    """(N,), the task."""

    @classmethod
    def of(cls, batch: Sequence[Played]) -> Turns:
        """The turns of what was played."""
        lengths = [len(one.rewards) for one in batch]
        groups = [one.episode.group if one.episode else -1 for one in batch]
        return cls(
            np.array([reward for one in batch for reward in one.rewards], dtype=np.float64),
            np.array([cut for one in batch for cut in one.truncated], dtype=np.bool_),
            np.array([turn for length in lengths for turn in range(length)], dtype=np.int64),
            np.repeat(np.arange(len(batch)), lengths),
            np.repeat(np.array(groups, dtype=np.int64), lengths),
        )

    def __len__(self) -> int:
        """The number N of turns."""
        return len(self.rewards)


def batch_rows(batch: Sequence[Played], multiple: int) -> list[Row]:
    """The rows of a batch, whose spans name the turns counted over the batch.

    OpenRLHF trains on equally many rows per GPU, and on full micro-batches only. So rows are cut in two until their
    number is a multiple: the parts have all tokens, and share the sampled ones. Since the loss is a sum over tokens,
    that changes nothing; neither would leaving out rows, but what they cost has been paid.

    Args:
        batch: what was played.
        multiple: the number of rows is a multiple of this.

    Returns:
        The rows. Where there are too few sampled tokens to cut, the last ones have none.
    """
    rows: list[Row] = []
    first = 0
    for one in batch:
        for row in one.rows:
            spans = [TurnSpan(first + span.turn, span.start, span.end) for span in row.spans]
            rows.append(Row(row.ids, row.logprobs, spans))
        first += len(one.rewards)
    while rows and len(rows) % multiple:
        largest = max(range(len(rows)), key=lambda index: _size(rows[index]))
        rows[largest], part = _cut(rows[largest])
        rows.append(part)
    return rows


def _size(row: Row) -> tuple[int, int]:
    # Between turns before within them: a critic wants the first token of each.
    return len(row.spans), sum(span.end - span.start for span in row.spans)


def _cut(row: Row) -> tuple[Row, Row]:
    if len(row.spans) == 1:
        turn, start, end = row.spans[0]
        middle = (start + end + 1) // 2
        head, tail = [TurnSpan(turn, start, middle)], [TurnSpan(turn, middle, end)] if middle < end else []
    else:
        middle = (len(row.spans) + 1) // 2
        head, tail = row.spans[:middle], row.spans[middle:]
    return Row(row.ids, row.logprobs, head), Row(row.ids, row.logprobs, tail)


@dataclass(frozen=True)
class Places:
    """Where turns stand in OpenRLHF's tables of actions, in which position `p` is about token `p + 1`; P places.

    A turn has one place, or several where its row was cut.
    """

    table: NDArray[np.int64]
    """(P,), which of the tables."""
    row: NDArray[np.int64]
    """(P,), the row in it."""
    start: NDArray[np.int64]
    """(P,), the position of the first of its tokens there."""
    end: NDArray[np.int64]
    """(P,), one past the last."""
    turn: NDArray[np.int64]
    """(P,), the turn."""
    first: NDArray[np.bool_]
    """(P,), whether that is the turn's first token."""

    @classmethod
    def of(cls, tables: Sequence[Sequence[Sequence[TurnSpan]]]) -> Places:
        """The places of the spans of each row of each table."""
        entries = [
            (table, row, start - 1, end - 1, turn)
            for table, rows in enumerate(tables)
            for row, spans in enumerate(rows)
            for turn, start, end in spans
        ]
        table, row, start, end, turn = np.array(entries, dtype=np.int64).reshape(-1, 5).T
        earliest = np.full(turn.max(initial=-1) + 1, np.iinfo(np.int64).max)
        np.minimum.at(earliest, turn, start)
        return cls(table, row, start, end, turn, first=start == earliest[turn])

    def sums(self, tables: Sequence[NDArray[np.float64]], turns: int) -> NDArray[np.float64]:
        """The sum over each turn's tokens of tables (rows, width): (turns,)."""
        totals = np.zeros(turns)
        for table, row, start, end, turn in zip(self.table, self.row, self.start, self.end, self.turn, strict=True):
            totals[turn] += tables[table][row, start:end].sum()
        return totals

    def lengths(self, turns: int) -> NDArray[np.int64]:
        """The number of tokens of each turn: (turns,)."""
        totals = np.zeros(turns, dtype=np.int64)
        np.add.at(totals, self.turn, self.end - self.start)
        return totals

    def firsts(self, tables: Sequence[NDArray[np.float64]], turns: int) -> NDArray[np.float64]:
        """What tables (rows, width) say at each turn's first token: (turns,)."""
        found = np.zeros(turns)
        for index in np.flatnonzero(self.first).tolist():
            found[self.turn[index]] = tables[int(self.table[index])][self.row[index], self.start[index]]
        return found

    def spread(
        self, numbers: NDArray[np.float64], shapes: Sequence[tuple[int, int]], *, first_only: bool = False
    ) -> list[NDArray[np.float32]]:
        """Tables of these shapes with each turn's number on its own tokens, or the first of them, and 0 elsewhere."""
        tables = [np.zeros(shape, dtype=np.float32) for shape in shapes]
        for index in range(len(self.table)):
            if first_only and not self.first[index]:
                continue
            start = self.start[index]
            end = start + 1 if first_only else self.end[index]
            tables[self.table[index]][self.row[index], start:end] = numbers[self.turn[index]]
        return tables
