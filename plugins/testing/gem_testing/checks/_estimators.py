"""The promises of an advantage estimator, one function each; see `gem_testing.checks`."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from random import Random

import numpy as np

from gem_core.advantages import Gather, compute_advantages
from gem_core.errors import AdvantageError
from gem_core.registry import advantage_spec
from gem_core.turn_batch import FloatArray, TurnBatch

_GROUPS, _EPISODES_PER_GROUP, _MAX_TURNS = 3, 4, 5
_GAMMA = 0.9
_CLOSE = 1e-6
"""Difference, relative and absolute, up to which sums in another order may differ."""


@dataclass(frozen=True)
class EstimatorSubject:
    """The estimator under test."""

    name: str

    def compute(self, batch: TurnBatch) -> FloatArray:
        """Its advantages of a batch on one rank: float (N,), finite. Raises `AdvantageError`."""
        return compute_advantages(self.name, batch, gamma=_GAMMA)[0]

    def compute_rank(self, batch: TurnBatch, gather: Gather) -> FloatArray:
        """Its advantages on one of several ranks, without the metrics, for which `compute_advantages` gathers too."""
        return np.asarray(advantage_spec(self.name).resolve()(batch, gamma=_GAMMA, gather=gather), dtype=np.float64)

    def batch(self, groups: Sequence[int] = range(_GROUPS)) -> TurnBatch:
        """Episodes of these groups, always the same, with what the spec says that the estimator needs and no more."""
        spec = advantage_spec(self.name)
        rewards: list[list[float]] = []
        for group in groups:
            random = Random(group)
            for _ in range(_EPISODES_PER_GROUP):
                rewards.append([random.gauss(0, 1) for _ in range(random.randint(1, _MAX_TURNS))])
        return TurnBatch.from_rewards(
            rewards,
            group_keys=[group for group in groups for _ in range(_EPISODES_PER_GROUP)] if spec.needs_groups else None,
            values=[[reward / 2 for reward in episode] for episode in rewards] if spec.needs_values else None,
            states=[[turn // 2 for turn in range(len(episode))] for episode in rewards] if spec.needs_states else None,
        )


def numbers(subject: EstimatorSubject) -> Iterator[str]:
    """It gives one finite number per turn, also where all rewards are equal, and none for no turns."""
    batch = subject.batch()
    equal = TurnBatch(np.ones(len(batch)), batch.episode, batch.turn, batch.group_key, batch.values, batch.state)
    for what, one in (("a batch", batch), ("equal rewards", equal), ("no turns", TurnBatch.from_rewards([]))):
        try:
            subject.compute(one)
        except AdvantageError as error:
            yield f"{what}: {error}"


def repeatable(subject: EstimatorSubject) -> Iterator[str]:
    """The same batch gives the same numbers, and the global generator of numpy is neither moved nor used."""
    before = _global_random()
    first, again = (subject.compute(subject.batch()) for _ in range(2))
    if before != _global_random():
        yield "it moved the global random state, which belongs to the training run. Make a generator of your own"
    if not np.array_equal(first, again):
        yield f"the same batch gave {_first(first)} and then {_first(again)}. Let it depend on the batch only"


def order(subject: EstimatorSubject) -> Iterator[str]:
    """The order of the turns in a batch does not matter: adapters give them in any order."""
    batch = subject.batch()
    places = np.random.default_rng(0).permutation(len(batch))
    shuffled = TurnBatch(
        batch.rewards[places],
        batch.episode[places],
        batch.turn[places],
        None if batch.group_key is None else batch.group_key[places],
        None if batch.values is None else batch.values[places],
        None if batch.state is None else batch.state[places],
    )
    expected, found = subject.compute(batch)[places], subject.compute(shuffled)
    if where := _difference(expected, found):
        yield f"the same turns in another order gave other numbers: {where}. Use batch.order and batch.following"


def ranks(subject: EstimatorSubject) -> Iterator[str]:
    """Turns on several ranks, one of them without turns, get the numbers that they get on one rank."""
    parts = [subject.batch([0]), subject.batch([]), subject.batch(range(1, _GROUPS))]
    expected = subject.compute(subject.batch())
    meeting = _Meeting(len(parts))
    with ThreadPoolExecutor(len(parts)) as pool:
        found = list(pool.map(partial(_rank, subject, meeting), range(len(parts)), parts))
    if len({*meeting.calls}) > 1:
        yield (
            f"ranks called gather {meeting.calls} times, so training would wait forever. Call it equally often on "
            "every rank, also without turns"
        )
    elif where := _difference(expected, np.concatenate([one for one in found if one is not None])):
        yield f"turns on {len(parts)} ranks got other numbers than on one: {where}. `gather` gives what the others have"


EstimatorCheck = Callable[[EstimatorSubject], Iterator[str]]

FIRST: tuple[EstimatorCheck, ...] = (numbers,)
"""The basis of all others."""
OTHERS: tuple[EstimatorCheck, ...] = (repeatable, order, ranks)


class _UnevenError(Exception):
    """Another rank ended with fewer calls of `gather`."""


class _Meeting:
    """`gather` between threads. A rank that ends early releases those that wait for it."""

    def __init__(self, count: int) -> None:
        self._given: list[list[FloatArray]] = [[] for _ in range(count)]
        self._ended: set[int] = set()
        self._changed = threading.Condition()

    @property
    def calls(self) -> list[int]:
        """How often each rank has called."""
        return [len(given) for given in self._given]

    def gather(self, rank: int, array: FloatArray) -> list[FloatArray]:
        """Every rank's array, in the order of ranks."""
        with self._changed:
            self._given[rank].append(np.array(array))
            number = len(self._given[rank])
            self._changed.notify_all()
            self._changed.wait_for(lambda: min(self.calls) >= number or self._short(number))
            if self._short(number):
                raise _UnevenError
            return [given[number - 1] for given in self._given]

    def end(self, rank: int) -> None:
        """The rank calls no more."""
        with self._changed:
            self._ended.add(rank)
            self._changed.notify_all()

    def _short(self, number: int) -> bool:
        return any(len(self._given[rank]) < number for rank in self._ended)


def _rank(subject: EstimatorSubject, meeting: _Meeting, rank: int, batch: TurnBatch) -> FloatArray | None:
    try:
        return subject.compute_rank(batch, partial(meeting.gather, rank))
    except _UnevenError:
        return None
    finally:
        meeting.end(rank)


def _difference(expected: FloatArray, found: FloatArray) -> str | None:
    wrong = np.flatnonzero(~np.isclose(expected, found, rtol=_CLOSE, atol=_CLOSE))
    return f"{found[wrong[0]]:g}, not {expected[wrong[0]]:g}" if wrong.size else None


def _first(advantages: FloatArray) -> str:
    return ", ".join(f"{one:g}" for one in advantages[:3])


def _global_random() -> bytes:
    return pickle.dumps(np.random.get_state())
