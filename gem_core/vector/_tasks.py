"""The tasks of a run, and which slot of a vector plays which of them."""

from __future__ import annotations

import math
import operator
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

EnvIds: TypeAlias = str | Sequence[str] | Mapping[str, float]
"""One environment id, a list of them, or `{id: weight}`."""


class Task(NamedTuple):
    """One task of a run. Its environment is reset with `derive_seed(seed of the run, task_id)`."""

    task_id: int
    """Counts all tasks of the run, from 0."""
    env_id: str
    data_index: int
    """Counts the tasks of this environment, from 0: the row of its data that an episode uses. Environments with
    `Env.takes_data_index` get it."""


class TaskTable:
    """The tasks of a run: an endless sequence of rounds, each with the same environments in the same order.

    A table depends on the environments and the size of a round only, so every process of a run has the same one.

    Args:
        env_ids: the environments. A list is dealt out in its own order, again and again; weights are shared out
            evenly (see `share_slots`).
        per_round: tasks of a round.

    Raises:
        ValueError: no id, a weight that is not above 0, or an environment that no task would play.
    """

    def __init__(self, env_ids: EnvIds, per_round: int) -> None:
        weights = weights_of(env_ids)
        self._env_ids = share_slots(weights, per_round) if isinstance(env_ids, Mapping) else _deal(env_ids, per_round)
        _check_all_play(weights, self._env_ids)
        self._counts = Counter(self._env_ids)
        self._before = [self._env_ids[:position].count(env_id) for position, env_id in enumerate(self._env_ids)]

    def __getitem__(self, task_id: int) -> Task:
        """The task with that number, which is at least 0."""
        if task_id < 0:
            raise IndexError(f"tasks are numbered from 0, and there is no task {task_id}")
        round_, position = divmod(task_id, len(self._env_ids))
        env_id = self._env_ids[position]
        return Task(task_id, env_id, round_ * self._counts[env_id] + self._before[position])

    @property
    def per_round(self) -> int:
        """Tasks of a round."""
        return len(self._env_ids)

    def per_round_of(self, env_id: str) -> int:
        """Tasks of a round that play this environment."""
        return self._counts[env_id]


@dataclass(frozen=True)
class TaskPlan:
    """Which task each slot of a vector plays in each of its episodes.

    Shards `(0, N)` to `(N - 1, N)`, each with `W` slots in groups of `g`, play rounds of `T = N * W / g` tasks. Slot
    `s` of shard `i` plays task `k * T + i * W / g + s // g` in its episode `k`. So the same seed means the same tasks
    on any number of shards.

    Raises:
        ValueError: numbers that cannot work, or as `TaskTable`.
    """

    env_ids: EnvIds
    """The environments of all shards; see `TaskTable`."""
    num_envs: int
    """Slots of this shard."""
    seed: int
    """Seed of the run."""
    group_size: int = 1
    """Neighboring slots that play the same task, for estimators that compare episodes of one task."""
    first_episode: int = 0
    """Episode at which each slot begins; a resumed run continues where it stopped."""
    shard: tuple[int, int] = (0, 1)
    """`(number, count)` of this vector among those that share the tasks."""
    table: TaskTable = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._check()
        per_shard = self.num_envs // self.group_size
        object.__setattr__(self, "table", TaskTable(self.env_ids, per_shard * self.shard[1]))

    def task(self, slot: int, episode: int) -> Task:
        """The task that `slot` plays in that episode."""
        position = self.shard[0] * (self.num_envs // self.group_size) + slot // self.group_size
        return self.table[episode * self.table.per_round + position]

    def _check(self) -> None:
        if not isinstance(self.shard, tuple | list) or len(self.shard) != 2:  # pyright: ignore[reportUnnecessaryIsInstance, reportUnnecessaryComparison]
            raise ValueError(f"shard must be (number, count), for example (0, 2), not {self.shard!r}")
        numbers = {"num_envs": self.num_envs, "group_size": self.group_size, "seed": self.seed}
        numbers |= {"first_episode": self.first_episode, "shard[0]": self.shard[0], "shard[1]": self.shard[1]}
        if wrong := {name: value for name, value in numbers.items() if not is_whole_number(value)}:
            raise ValueError(f"whole numbers are needed, not {wrong}")
        if self.num_envs < 1 or self.group_size < 1 or self.num_envs % self.group_size:
            raise ValueError(
                f"cannot make {self.num_envs} environments in groups of {self.group_size}: both must be at least 1, "
                "and the groups full"
            )
        if self.first_episode < 0 or not 0 <= self.shard[0] < self.shard[1]:
            raise ValueError(
                f"first_episode must be at least 0, and the number of a shard below the count of shards: "
                f"first_episode={self.first_episode}, shard={self.shard}"
            )


def is_whole_number(value: Any) -> bool:
    """An integer of any class, such as numpy's, but no bool."""
    try:
        operator.index(value)
    except TypeError:
        return False
    return not isinstance(value, bool)


def weights_of(env_ids: EnvIds) -> dict[str, float]:
    """The weight of each id; an id that a list names twice counts twice.

    Raises:
        ValueError: no id, or a weight that is not above 0.
    """
    weights: dict[str, float] = {}
    weights.update(
        env_ids if isinstance(env_ids, Mapping) else Counter([env_ids] if isinstance(env_ids, str) else env_ids)
    )
    wrong = {env_id: weight for env_id, weight in weights.items() if not _is_weight(weight)}
    if wrong or not weights:
        raise ValueError(f"environment weights must be above 0, got {wrong or 'no environment id'}")
    if not all(isinstance(env_id, str) for env_id in weights):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ValueError(f"environment ids must be texts such as 'game:Corridor-v0', not {list(weights)}")
    return weights


def fewest_slots(env_ids: EnvIds) -> int:
    """The smallest number of slots that gives each id its exact share.

    Raises:
        ValueError: a weight is not a whole number.
    """
    weights = weights_of(env_ids)
    if not all(float(weight).is_integer() for weight in weights.values()):
        raise ValueError(f"the weights {weights} are no whole numbers: say how many environments, as num_envs")
    return int(sum(weights.values()))


def share_slots(weights: Mapping[str, float], count: int) -> list[str]:
    """One id per slot, each as often as its weight says, evenly interleaved.

    Slot `i` has the same id for every `count`: each slot goes to the id that is furthest behind its share (smooth
    weighted round-robin).

    Raises:
        ValueError: an id would have no slot.
    """
    total = sum(weights.values())
    credit = dict.fromkeys(weights, 0.0)
    slots: list[str] = []
    for _ in range(count):
        for env_id, weight in weights.items():
            credit[env_id] += weight
        # Rounding must not decide between equals; the first named does.
        chosen = max(credit, key=lambda env_id: round(credit[env_id] / total, 9))
        credit[chosen] -= total
        slots.append(chosen)
    _check_all_play(weights, slots)
    return slots


def _deal(env_ids: str | Sequence[str], count: int) -> list[str]:
    given = [env_ids] if isinstance(env_ids, str) else env_ids
    return [given[position % len(given)] for position in range(count)]


def _check_all_play(weights: Mapping[str, float], slots: Sequence[str]) -> None:
    if missing := [env_id for env_id in weights if env_id not in slots]:
        raise ValueError(
            f"{len(weights)} environment ids for {len(slots)} slots: {missing[:3]} would never be played. Make the "
            "vector wider, or the weights more equal."
        )


def _is_weight(weight: object) -> bool:
    return isinstance(weight, int | float) and not isinstance(weight, bool) and weight > 0 and math.isfinite(weight)
