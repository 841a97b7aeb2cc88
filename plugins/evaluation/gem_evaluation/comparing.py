"""Two evaluations of the same tasks: `gem-core eval compare A B`."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from gem_evaluation._errors import EvaluationError
from gem_evaluation._records import Result
from gem_evaluation._report import number
from gem_evaluation._statistics import Estimate, Success, difference, success_difference, success_with_failures
from gem_evaluation._store import Difference, differences, read_failures, read_identity, read_results
from gem_evaluation.results import FAIL_ON_ERROR

MAX_FLIPPED = 20
TASK_SETTINGS = ("id", "env_kwargs", "provenance")
"""Settings of an entry that decide what its tasks are. Others, such as tools, may differ in a comparison."""


class Compared(msgspec.Struct, frozen=True):
    """How both did on the tasks of one environment, or of all together. Differences are B less A."""

    label: str
    tasks: int
    """Tasks with a finished episode in both."""
    first: float
    """Mean success of A over these tasks."""
    second: float
    success: Estimate
    """Difference of success."""
    failed: tuple[int, int]
    """Failed episodes of A and B, which are in no other number but the next three."""
    too_many: bool
    """Whether so many failed that the means and their difference are not printed."""
    first_range: tuple[float, float]
    """The success of A over the tasks of both, if all failed episodes were unsuccessful, and if all were successful."""
    second_range: tuple[float, float]
    difference_range: tuple[float, float]
    """The lowest and the highest difference of these."""
    total_reward: Estimate
    """Difference of the undiscounted return."""
    better: int
    """Tasks with a higher mean success in B."""
    worse: int


class Flipped(msgspec.Struct, frozen=True):
    """A task whose mean success differs."""

    label: str
    task_id: int
    first: float
    second: float


class Comparison(msgspec.Struct, frozen=True):
    """What differs between two evaluations, A and B, of the same tasks."""

    first: str
    """The folder of A."""
    second: str
    warnings: list[str]
    """What makes the comparison less sure."""
    settings: list[Difference]
    """Settings that differ."""
    environments: list[Compared]
    together: Compared
    """Over the tasks of all environments."""
    flipped: list[Flipped]
    """The tasks whose mean success differs most, at most `MAX_FLIPPED` of them."""


class Pair(msgspec.Struct, frozen=True):
    """The finished episodes of a task in A and B."""

    label: str
    task_id: int
    first: list[Result]
    second: list[Result]

    @property
    def flipped(self) -> Flipped:
        """The mean success in both."""
        return Flipped(self.label, self.task_id, *(float(np.mean(one)) for one in self.successes))

    @property
    def successes(self) -> tuple[list[bool], list[bool]]:
        """Of A and B."""
        return [one.success for one in self.first], [one.success for one in self.second]

    @property
    def rewards(self) -> tuple[list[float], list[float]]:
        """Of A and B."""
        return [one.total_reward for one in self.first], [one.total_reward for one in self.second]


def compare(first: Path, second: Path) -> Comparison:
    """Compare two evaluations task by task.

    Environments with the same label are compared, over the tasks with a finished episode in both.

    Args:
        first, second: the folders of the evaluations A and B.

    Raises:
        EvaluationError: a folder cannot be read, or the evaluations do not have the same tasks.
    """
    identities = read_identity(first), read_identity(second)
    labels = _common_labels(*identities)
    _check_tasks(*identities, labels)
    tasks = _tasks(first), _tasks(second)
    failed = _failed(first, tasks[0]), _failed(second, tasks[1])
    pairs = {label: _pairs(label, *tasks) for label in labels}
    everything = [pair for one in pairs.values() for pair in one]
    if not everything:
        raise EvaluationError(f"{first} and {second} have no task with a finished episode in both")
    return Comparison(
        first=str(first),
        second=str(second),
        warnings=[*_warnings(*identities, labels, *tasks)],
        settings=[*differences(_restricted(identities[0], labels), _restricted(identities[1], labels))],
        environments=[_compared(label, one, _ranges([label], tasks, failed)) for label, one in pairs.items() if one],
        together=_compared("together", everything, _ranges(labels, tasks, failed)),
        flipped=_most_flipped(everything),
    )


def tables(comparison: Comparison) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """The comparison for people: titles and rows."""
    several = len(comparison.environments) > 1
    rows = [*comparison.environments, *([comparison.together] if several else [])]
    yield f"A: {comparison.first}\nB: {comparison.second}", [_row(one) for one in rows]
    count = comparison.together.better + comparison.together.worse
    shown = f"the {MAX_FLIPPED} that differ most of {count}" if count > MAX_FLIPPED else f"{count}"
    yield (
        f"Tasks with another success: {shown}",
        [
            {"environment": one.label, "task": str(one.task_id), "A": f"{one.first:.2f}", "B": f"{one.second:.2f}"}
            for one in comparison.flipped
        ],
    )
    yield (
        "Settings that differ",
        [
            {"setting": one.setting, "A": f"{one.first!r:.200}", "B": f"{one.second!r:.200}"}
            for one in comparison.settings
        ],
    )


def _row(one: Compared) -> dict[str, str]:
    low, value, high = (f"{100 * share:+.1f}" for share in (one.success.low, one.success.value, one.success.high))
    known = [] if one.too_many else [f"{value} [{low}, {high}]"]
    return {
        "environment": one.label,
        "tasks": str(one.tasks),
        "success A": _share(one.first, one.first_range, one),
        "success B": _share(one.second, one.second_range, one),
        "B - A, points [95 %]": ", ".join([*known, *_with_failed(one)]),
        "return, B - A [95 %]": number(one.total_reward),
        "better": str(one.better),
        "worse": str(one.worse),
    }


def _share(value: float, ends: tuple[float, float], one: Compared) -> str:
    known = [] if one.too_many else [f"{value:.1%}"]
    return ", ".join([*known, *([f"{ends[0]:.1%} to {ends[1]:.1%} with failed"] if any(one.failed) else [])])


def _with_failed(one: Compared) -> list[str]:
    low, high = (f"{100 * end:+.1f}" for end in one.difference_range)
    return [f"{low} to {high} with failed"] if any(one.failed) else []


def _common_labels(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    one, other = first["environments"], second["environments"]
    if common := [label for label in one if label in other]:
        return common
    raise EvaluationError(
        f"the evaluations have no environment in common: {', '.join(one)} in A, {', '.join(other)} in B. Entries are "
        "paired by their name, or id; give entries the same `name` in both suites"
    )


def _check_tasks(first: Mapping[str, Any], second: Mapping[str, Any], labels: Sequence[str]) -> None:
    """Raises `EvaluationError` if the tasks are not the same."""
    found = [*differences(_what_tasks_are(first, labels), _what_tasks_are(second, labels))]
    if found:
        shown = "\n".join(f"  {one.setting}: {one.first!r:.200} in A, {one.second!r:.200} in B" for one in found)
        raise EvaluationError(
            f"the evaluations do not have the same tasks, so they cannot be paired:\n{shown}\nEvaluate one of them "
            "again, with the settings of the other"
        )


def _what_tasks_are(identity: Mapping[str, Any], labels: Sequence[str]) -> dict[str, Any]:
    environments = identity["environments"]
    return {
        "seed": identity["seed"],
        "environments": {label: {name: environments[label][name] for name in TASK_SETTINGS} for label in labels},
    }


def _restricted(identity: Mapping[str, Any], labels: Sequence[str]) -> dict[str, Any]:
    return {**identity, "environments": {label: identity["environments"][label] for label in labels}}


Tasks = Mapping[tuple[str, int], list[Result]]


def _tasks(folder: Path) -> Tasks:
    finished = {one.key: one for one in read_results(folder)}
    tasks: dict[tuple[str, int], list[Result]] = defaultdict(list)
    for key in sorted(finished):
        tasks[key.entry, key.task_id].append(finished[key])
    return tasks


Failed = Counter[tuple[str, int]]
"""How many episodes of a task failed, and were not finished later."""


def _failed(folder: Path, tasks: Tasks) -> Failed:
    finished = {one.key for results in tasks.values() for one in results}
    failed = {one.key for one in read_failures(folder)} - finished
    return Counter((key.entry, key.task_id) for key in failed)


def _ranges(labels: Sequence[str], tasks: Sequence[Tasks], failed: Sequence[Failed]) -> list[tuple[int, Success]]:
    """Of A and B: how many episodes failed, and the success with them, over the tasks that both played."""
    one, other = ({*played, *lost} for played, lost in zip(tasks, failed, strict=True))
    shared = one & other
    found: list[tuple[int, Success]] = []
    for played, lost in zip(tasks, failed, strict=True):
        keys = sorted(key for key in shared if key[0] in labels)
        successes = [([one.success for one in played.get(key, [])], lost[key]) for key in keys]
        success = success_with_failures(successes, FAIL_ON_ERROR)
        assert success is not None  # there is a task with a finished episode in both
        found.append((sum(lost[key] for key in keys), success))
    return found


def _pairs(label: str, first: Tasks, second: Tasks) -> list[Pair]:
    return [Pair(label, key[1], first[key], second[key]) for key in first if key[0] == label and key in second]


def _compared(label: str, pairs: Sequence[Pair], ranges: Sequence[tuple[int, Success]]) -> Compared:
    before, after = zip(*(pair.successes for pair in pairs), strict=True)
    rewards, new_rewards = zip(*(pair.rewards for pair in pairs), strict=True)
    tasks = [pair.flipped for pair in pairs]
    (lost, one), (lost_too, other) = ranges
    first, second = ((both.at_least.value, both.at_most.value) for both in (one, other))
    return Compared(
        label=label,
        tasks=len(tasks),
        first=float(np.mean([one.first for one in tasks])),
        second=float(np.mean([one.second for one in tasks])),
        success=success_difference(before, after),
        failed=(lost, lost_too),
        too_many=one.too_many or other.too_many,
        first_range=first,
        second_range=second,
        difference_range=(second[0] - first[1], second[1] - first[0]),
        total_reward=difference(rewards, new_rewards),
        better=sum(one.second > one.first for one in tasks),
        worse=sum(one.second < one.first for one in tasks),
    )


def _most_flipped(pairs: Sequence[Pair]) -> list[Flipped]:
    differing = [one for one in (pair.flipped for pair in pairs) if one.first != one.second]
    return sorted(differing, key=lambda one: (-abs(one.second - one.first), one.label, one.task_id))[:MAX_FLIPPED]


def _warnings(
    first: Mapping[str, Any], second: Mapping[str, Any], labels: Sequence[str], tasks: Tasks, others: Tasks
) -> Iterator[str]:
    for one in differences(first["versions"], second["versions"]):
        yield f"{one.setting} is {one.first} in A and {one.second} in B, so tasks may differ"
    for name, environments in (("A", first["environments"]), ("B", second["environments"])):
        if alone := [label for label in environments if label not in labels]:
            yield f"only {name} has {', '.join(alone)}; not compared"
    for label in labels:
        if count := sum(key[0] == label for key in {*tasks} ^ {*others}):
            yield f"{label}: {count} tasks have a finished episode in one evaluation only; not compared"
