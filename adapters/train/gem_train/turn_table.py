"""The turns of a batch: their rewards, and the place of their tokens in a framework's tables."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from gem_core.errors import AdvantageError
from gem_core.turn_batch import TurnBatch
from gem_train.rows import TurnSpan

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class TurnTable:
    """One entry per turn of a batch; N turns in all.

    A framework keeps one number per token in tables of shape (rows, width): one table per batch, or several whose rows
    follow each other. `sums`, `firsts` and `tokens` read such tables, `spread` makes them. All four raise
    `AdvantageError` if the tables lack rows or columns of the turns.
    """

    episode: IntArray
    """(N,), the episode, counted over the batch."""
    task_id: IntArray
    """(N,), `Episode.task_id`."""
    group_key: IntArray
    """(N,), `Episode.group_key`: the group whose episodes an estimator compares."""
    role: IntArray
    """(N,), the environment and agent, by number."""
    position: IntArray
    """(N,), the position of the turn in its episode."""
    reward: FloatArray
    """(N,), the reward of the environment."""
    truncated: NDArray[np.bool_]
    """(N,), whether the token limit cut the response off."""
    row: IntArray
    """(N,), the row with the response, counted over all tables."""
    start: IntArray
    """(N,), the column of the first token of the response."""
    end: IntArray
    """(N,), one past the column of the last token of the response."""
    state: IntArray
    """(N,), the number of the observation; see `TurnSpan.state`."""
    names: Sequence[Hashable] = ()
    """The name of each episode with turns, by its number in `episode`."""

    @classmethod
    def of(
        cls,
        turns: Sequence[Sequence[TurnSpan]],
        episodes: Sequence[Hashable],
        task_ids: Sequence[int],
        first_columns: Sequence[int] | None = None,
        *,
        group_keys: Sequence[int] | None = None,
        roles: Sequence[int] | None = None,
    ) -> TurnTable:
        """The table of a batch, with one entry per turn in the order of the rows.

        Args:
            turns: the turns of each row.
            episodes: a name for each row's episode.
            task_ids: for each row, `task_id` of its episode, the same on all processes.
            first_columns: for each row, the position that the first column of a framework's table stands for, where
                tables leave out prompts or are shifted; by default 0.
            group_keys: for each row, `group_key` of its episode; by default `task_id`.
            roles: for each row, `role` of its episode; by default the same for all.
        """
        entries = [
            (row, episode, task, first, *turn)
            for row, (episode, task, first, spans) in enumerate(
                zip(
                    episodes, task_ids, [0] * len(turns) if first_columns is None else first_columns, turns, strict=True
                )
            )
            for turn in spans
        ]
        labels = [
            (task_ids[row] if group_keys is None else group_keys[row], 0 if roles is None else roles[row])
            for row, *_ in entries
        ]
        rows, of_episode, of_task, firsts, positions, starts, ends, rewards, truncated, states = (
            zip(*entries, strict=True) if entries else [()] * 10
        )
        offsets = _integers(firsts)
        return cls(
            episode=_numbered(of_episode),
            task_id=_integers(of_task),
            group_key=_integers([key for key, _ in labels]),
            role=_integers([role for _, role in labels]),
            position=_integers(positions),
            reward=np.array(rewards, dtype=np.float64),
            truncated=np.array(truncated, dtype=np.bool_),
            row=_integers(rows),
            start=_integers(starts) - offsets,
            end=_integers(ends) - offsets,
            state=_integers(states),
            names=[*dict.fromkeys(of_episode)],
        )

    def __len__(self) -> int:
        """The number N of turns."""
        return len(self.row)

    @property
    def length(self) -> IntArray:
        """(N,), sampled tokens of each turn."""
        return self.end - self.start

    def reordered(self, order: Sequence[int]) -> TurnTable:
        """The table for rows in another order.

        Args:
            order: for each new place, the old number of its row. Rows without turns may have any unused number.

        Raises:
            AdvantageError: a row with turns is missing, or a row occurs twice.
        """
        places = {row: place for place, row in enumerate(order)}
        if len(places) < len(order) or not places.keys() >= {*self.row.tolist()}:
            raise AdvantageError(f"the order {[*order]} does not name every row with turns, or names a row twice")
        return replace(self, row=_integers([places[row] for row in self.row.tolist()]))

    def only(self, chosen: NDArray[np.bool_]) -> TurnTable:
        """The table of some turns.

        Args:
            chosen: (N,), whether a turn is kept.
        """
        return replace(self, **{name: getattr(self, name)[chosen] for name in _COLUMNS})

    def batch(self, rewards: FloatArray | None = None, values: FloatArray | None = None) -> TurnBatch:
        """The turns as a batch for estimators.

        Args:
            rewards: (N,), by default the rewards of the environment.
            values: (N,), the values of a critic.

        Raises:
            AdvantageError: a turn is missing or occurs twice, or a number is not finite.
        """
        reward = self.reward if rewards is None else rewards
        return TurnBatch(reward, self.episode, self.position, self.group_key, values, self.state, self.role)

    def sums(self, tables: Sequence[FloatArray]) -> FloatArray:
        """The sum over each turn's tokens: (N,)."""
        found = np.zeros(len(self))
        for table, turns, cells in self._cells([one.shape for one in tables], self.length):
            found += np.bincount(turns, tables[table][cells], len(self))
        return found

    def firsts(self, tables: Sequence[FloatArray]) -> FloatArray:
        """The number at each turn's first token: (N,)."""
        found = np.zeros(len(self))
        for table, turns, cells in self._cells([one.shape for one in tables], np.ones_like(self.length)):
            found[turns] = tables[table][cells]
        return found

    def tokens(self, tables: Sequence[NDArray[np.floating]]) -> list[NDArray[np.floating]]:
        """The numbers of each turn's tokens: N arrays, as long as the turns."""
        found: list[NDArray[np.floating]] = [np.zeros(0)] * len(self)
        for table, turns, cells in self._cells([one.shape for one in tables], self.length):
            for turn, part in zip(*_runs(turns, tables[table][cells]), strict=True):
                found[turn] = part
        return found

    def spread(
        self, numbers: FloatArray, shapes: Sequence[tuple[int, ...]], *, first_only: bool = False
    ) -> list[NDArray[np.float32]]:
        """Tables of these shapes, with each turn's number on its tokens and 0 elsewhere.

        Args:
            numbers: (N,).
            shapes: (rows, width) of each table.
            first_only: set only the first token of each turn.

        Raises:
            AdvantageError: not one number per turn, or turns outside the tables.
        """
        if numbers.shape != (len(self),):
            raise AdvantageError(f"got numbers of shape {numbers.shape} for {len(self)} turns")
        tables = [np.zeros(shape, dtype=np.float32) for shape in shapes]
        for table, turns, cells in self._cells(shapes, np.ones_like(self.length) if first_only else self.length):
            tables[table][cells] = numbers[turns]
        return tables

    def _cells(
        self, shapes: Sequence[tuple[int, ...]], lengths: IntArray
    ) -> Iterator[tuple[int, IntArray, tuple[IntArray, IntArray]]]:
        """The first `lengths` tokens of each turn, in each table of these shapes.

        Yields:
            The index of the table; for each token its turn, and its row and column in the table.
        """
        self._check_shapes(shapes)
        first_row = 0
        for table, (rows, *_) in enumerate(shapes):
            own = np.flatnonzero((first_row <= self.row) & (self.row < first_row + rows))
            turns = np.repeat(own, lengths[own])
            begins = np.repeat(np.cumsum(lengths[own]) - lengths[own], lengths[own])
            yield table, turns, (self.row[turns] - first_row, self.start[turns] + np.arange(len(turns)) - begins)
            first_row += rows

    def _check_shapes(self, shapes: Sequence[tuple[int, ...]]) -> None:
        rows = sum(shape[0] for shape in shapes)
        widths = np.repeat([shape[1] for shape in shapes], [shape[0] for shape in shapes])
        if not len(self):
            return
        if self.row.max() >= rows:
            raise AdvantageError(f"the turns have {self.row.max() + 1} rows, but the tables {[*shapes]} have {rows}")
        if self.start.min() < 0 or (self.end > widths[self.row]).any():
            raise AdvantageError(
                f"turns are in columns {self.start.min()} to {self.end.max() - 1}, outside the tables {[*shapes]}"
            )


_COLUMNS = tuple(one.name for one in fields(TurnTable) if one.name != "names")


def _integers(numbers: Sequence[int]) -> IntArray:
    return np.array(numbers, dtype=np.int64)


def _runs(turns: IntArray, numbers: NDArray[np.floating]) -> tuple[list[int], list[NDArray[np.floating]]]:
    """The numbers of each turn, where the numbers of a turn stand together."""
    own, starts = np.unique(turns, return_index=True)
    return own.tolist(), np.split(numbers, starts[1:]) if len(own) else []


def _numbered(names: Sequence[Hashable]) -> IntArray:
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return _integers([numbers[name] for name in names])
