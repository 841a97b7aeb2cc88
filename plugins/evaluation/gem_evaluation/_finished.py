"""Finished episodes in numbers: 89 bytes each, so that the memory of an evaluation hardly grows while it plays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, TypeAlias, cast, get_args

import numpy as np
from numpy.typing import NDArray

from gem_core.episode import StopReason
from gem_evaluation._errors import EvaluationError
from gem_evaluation._records import Key, PolicyFault, Result

Rows: TypeAlias = NDArray[np.void]
"""Episodes, of the type `EPISODE`. A table of them is (tasks, repeats), where those without `played` are missing."""

_STOP_REASONS = [*StopReason]
_FAULTS: list[PolicyFault | None] = [None, *get_args(PolicyFault)]
_TYPES = {
    "success": np.bool_,
    "total_reward": np.float64,
    "turns": np.int32,
    "stop_reason": np.uint8,
    "invalid": np.int32,
    "truncated": np.int32,
    "tool_calls": np.int32,
    "tool_successes": np.int32,
    "prompt_tokens": np.int64,
    "completion_tokens": np.int64,
    "requests": np.int32,
    "cost": np.float64,
    "seconds": np.float64,
    "opening": "S16",
    "only_thought": np.int32,
    "policy_fault": np.uint8,
}
MAX_EPISODES = 1 << 23
"""Of an environment in one evaluation; their tables have 750 MB. A line of a file must not take more."""
EPISODE = np.dtype([("played", np.bool_), *_TYPES.items()])
"""The fields of a `Result`; of the stop reason and the fault their numbers, of the opening ASCII."""


class Finished:
    """The finished episodes of an evaluation.

    Args:
        results: some that are finished before.
    """

    def __init__(self, results: Iterable[Result] = ()) -> None:
        self._tables: dict[str, Rows] = {}
        for result in results:
            self.add(result)

    def add(self, result: Result) -> None:
        """Keep an episode, in place of one with the same key."""
        key = result.key
        table = self._tables.get(key.entry)
        if table is None or key.task_id >= table.shape[0] or key.repeat >= table.shape[1]:
            table = self._tables[key.entry] = _with_room(table, key)
        values = {name: getattr(result, name) for name in _TYPES}
        values["stop_reason"] = _STOP_REASONS.index(result.stop_reason)
        values["opening"] = result.opening.encode()
        values["policy_fault"] = _FAULTS.index(result.policy_fault)
        table[key.task_id, key.repeat] = (True, *values.values())

    def __len__(self) -> int:
        """How many there are."""
        return sum(int(table["played"].sum()) for table in self._tables.values())

    def __contains__(self, key: Key) -> bool:
        table = self.table(key.entry, key.task_id + 1, key.repeat + 1)
        return table.shape == (key.task_id + 1, key.repeat + 1) and bool(table["played"][-1, -1])

    def table(self, entry: str, tasks: int | None = None, repeats: int | None = None) -> Rows:
        """The episodes of an entry: of these first tasks and repeats, or of all."""
        return self._tables.get(entry, np.empty((0, 0), EPISODE))[:tasks, :repeats]

    def tables(self, planned: Mapping[str, tuple[int, int]]) -> dict[str, Rows]:
        """The episodes of each entry, in its first tasks and repeats."""
        return {entry: self.table(entry, *most) for entry, most in planned.items()}


def rows_of(tables: Iterable[Rows]) -> Rows:
    """All episodes of some tables."""
    return np.concatenate([np.empty(0, EPISODE), *(table[table["played"]] for table in tables)])


def by_task(tables: Iterable[Rows], field: str) -> list[list[Any]]:
    """A field of the episodes, in a list for each task that has some."""
    found: list[list[Any]] = []
    for table in tables:
        played: Any = table["played"]
        values = iter(cast("list[Any]", table[field][played].tolist()))
        found += [[*islice(values, count)] for count in played.sum(axis=1).tolist() if count]
    return found


def openings(table: Rows) -> Iterator[tuple[int, str]]:
    """The tasks of a table with an episode, each with the hash of its first prompt."""
    played: Any = table["played"]
    hashes: Any = table["opening"]
    for task in np.flatnonzero(played.any(axis=1)).tolist():
        yield task, hashes[task, played[task].argmax()].decode()


def stop_reasons(rows: Rows) -> Iterator[StopReason]:
    """How the episodes ended."""
    return (_STOP_REASONS[number] for number in _numbers(rows, "stop_reason"))


def policy_faults(rows: Rows) -> Iterator[PolicyFault]:
    """The faults of episodes that ended by the policy's own."""
    return (fault for number in _numbers(rows, "policy_fault") if (fault := _FAULTS[number]) is not None)


def _numbers(rows: Rows, field: str) -> list[int]:
    return cast("list[int]", rows[field].tolist())


def _with_room(table: Rows | None, key: Key) -> Rows:
    """The table with room for this key and, so that it need not grow often, for as many tasks again."""
    tasks, repeats = (0, 0) if table is None else table.shape
    if (most := max(tasks, key.task_id + 1) * max(repeats, key.repeat + 1)) > MAX_EPISODES:
        raise EvaluationError(
            f"{key.entry} would have {most:,} episodes, and an evaluation has {MAX_EPISODES:,} at most"
        )
    repeats = max(repeats, key.repeat + 1)
    if key.task_id >= tasks:
        tasks = max(min(2 * tasks, MAX_EPISODES // repeats), key.task_id + 1, 64)
    larger = np.zeros((tasks, repeats), EPISODE)
    if table is not None:
        larger[: table.shape[0], : table.shape[1]] = table
    return larger
