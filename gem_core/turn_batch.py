"""The turns that advantages are computed for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gem_core.errors import AdvantageError

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]

# Sums of squares of numbers up to this size stay finite in float64 for any batch that fits in memory.
MAX_NUMBER = 1e100


@dataclass(frozen=True, eq=False)
class TurnBatch:
    """The turns that one rank holds: one entry per turn, in any order, read-only.

    Every episode must be complete and on one rank. A rank may hold no turns while others hold some.

    Args:
        rewards: float (N,), the reward of each turn.
        episode: int (N,), the episode that the turn belongs to; any number, unique within the rank.
        turn: int (N,), the position of the turn in its episode; an episode of k turns has 0, 1, ..., k-1.
        group_key: int (N,), `Episode.group_key` of the turn's episode, the same number on all ranks. Only estimators
            that compare the episodes of a task need it.
        values: float (N,), the critic's value at the first token of each turn. Only `gae` needs it.
        state: int (N,), a number for the observation of each turn, equal for equal observations, on all ranks.
            Only `gigpo` needs it.
        role: int (N,), the environment and agent that the turn's episode belongs to, the same number on all ranks. Only
            `rae` needs it.

    Raises:
        AdvantageError: columns of other shapes or types, numbers that are not finite or exceed 1e100 in magnitude,
            repeated or missing turns, or an episode in two groups or roles.
    """

    rewards: FloatArray
    episode: IntArray
    turn: IntArray
    group_key: IntArray | None = None
    values: FloatArray | None = None
    state: IntArray | None = None
    role: IntArray | None = None

    def __post_init__(self) -> None:
        count = np.size(self.rewards)
        for name, dtype in _COLUMNS.items():
            column = getattr(self, name)
            if column is None and count == 0:
                column = ()  # a rank without turns need not give the columns that the others have
            if column is not None:
                object.__setattr__(self, name, _read_only(name, column, dtype, count))
        self._check_turns()
        self._check_labels("group_key", "all turns of an episode belong to the group of its task")
        self._check_labels("role", "all turns of an episode are those of one agent")
        self._check_numbers("rewards", self.rewards)
        if self.values is not None:
            self._check_numbers("values", self.values)

    @classmethod
    def from_rewards(
        cls,
        rewards_per_episode: Sequence[Sequence[float]],
        group_keys: Sequence[int] | None = None,
        values: Sequence[Sequence[float]] | None = None,
        states: Sequence[Sequence[int]] | None = None,
    ) -> TurnBatch:
        """A batch from the rewards of each episode, ordered by episode, then turn.

        Args:
            rewards_per_episode: E sequences of rewards, one reward per turn. An episode's number is its index here. An
                empty sequence is an episode without turns, which counts in no statistic.
            group_keys: `Episode.group_key` of each of the E episodes.
            values: E sequences of critic values, shaped like the rewards.
            states: E sequences of the numbers of states, shaped like the rewards.

        Raises:
            AdvantageError: if `group_keys`, `values` or `states` do not match the rewards, and as the constructor.
        """
        lengths = [len(rewards) for rewards in rewards_per_episode]
        if group_keys is not None and len(group_keys) != len(lengths):
            raise AdvantageError(f"{len(group_keys)} group keys for {len(lengths)} episodes: give one per episode")
        for name, rows in (("values", values), ("states", states)):
            if rows is not None and [len(row) for row in rows] != lengths:
                raise AdvantageError(f"{name} do not match the rewards: give one number per turn of each episode")
        counts = np.array(lengths, dtype=np.int64)
        return cls(
            rewards=_flat(rewards_per_episode),
            episode=np.repeat(np.arange(len(lengths)), counts),
            turn=np.array([turn for length in lengths for turn in range(length)], dtype=np.int64),
            group_key=None if group_keys is None else np.repeat(np.asarray(group_keys), counts),
            values=None if values is None else _flat(values),
            state=None if states is None else np.array([one for row in states for one in row], dtype=np.int64),
        )

    def __len__(self) -> int:
        """The number N of turns."""
        return len(self.rewards)

    @cached_property
    def order(self) -> IntArray:
        """int (N,): positions of the turns sorted by episode, then turn."""
        return np.lexsort((self.turn, self.episode))

    @cached_property
    def following(self) -> IntArray:
        """int (N,): position of the next turn of the same episode; N for an episode's last turn."""
        following = np.full(len(self), len(self), dtype=np.int64)
        before, after = self.order[:-1], self.order[1:]
        same = self.episode[before] == self.episode[after]
        following[before[same]] = after[same]
        return following

    @cached_property
    def first_turns(self) -> IntArray:
        """int (E,): position of the first turn of each of the E episodes, episodes in ascending order."""
        return self.order[self.turn[self.order] == 0]

    @cached_property
    def episode_row(self) -> IntArray:
        """int (N,): index of each turn's episode in `first_turns`."""
        return np.unique(self.episode, return_inverse=True)[1]

    def _check_turns(self) -> None:
        rows = np.arange(len(self))
        episode, turn = self.episode[self.order], self.turn[self.order]
        expected = rows - np.searchsorted(episode, episode)
        wrong = np.flatnonzero(turn != expected)
        if not wrong.size:
            return
        found, wanted = int(turn[wrong[0]]), int(expected[wrong[0]])
        if found < 0:
            fault = f"a negative turn {found}"
        elif found < wanted:
            fault = f"turn {found} more than once"
        else:
            fault = f"a turn {found} but no turn {wanted}"
        raise AdvantageError(
            f"episode {episode[wrong[0]]} has {fault} (position {self.order[wrong[0]]}): number the turns of "
            "every episode 0, 1, 2, ..., and give each episode of this rank its own index"
        )

    def _check_labels(self, name: str, rule: str) -> None:
        labels: IntArray | None = getattr(self, name)
        if labels is None:
            return
        stray = np.flatnonzero(labels != labels[self.first_turns][self.episode_row])
        if stray.size:
            raise AdvantageError(
                f"episode {self.episode[stray[0]]} is in more than one {name} (position {stray[0]}): {rule}"
            )

    def _check_numbers(self, name: str, column: FloatArray) -> None:
        bad = np.flatnonzero(~(np.abs(column) <= MAX_NUMBER))  # also catches NaN, which compares as false
        if bad.size:
            at = bad[0]
            raise AdvantageError(
                f"{name}[{at}] is {column[at]} (episode {self.episode[at]}, turn {self.turn[at]}): {name} "
                f"must be finite and at most {MAX_NUMBER:g} in magnitude; drop the episode or fix the environment"
            )


_COLUMNS = {
    "rewards": np.dtype(np.float64),
    "episode": np.dtype(np.int64),
    "turn": np.dtype(np.int64),
    "group_key": np.dtype(np.int64),
    "values": np.dtype(np.float64),
    "state": np.dtype(np.int64),
    "role": np.dtype(np.int64),
}


def _read_only(name: str, column: ArrayLike, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
    array = np.asarray(column)
    if array.shape != (count,):
        raise AdvantageError(f"{name} has shape {array.shape}: expected ({count},), one entry per turn")
    if count and not np.can_cast(array.dtype, dtype):
        raise AdvantageError(f"{name} has dtype {array.dtype}: expected numbers that fit {dtype}")
    array = array.astype(dtype)
    array.setflags(write=False)
    return array


def _flat(rows: Iterable[Iterable[float]]) -> FloatArray:
    return np.array([number for row in rows for number in row])
