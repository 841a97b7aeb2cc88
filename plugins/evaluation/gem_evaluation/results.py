"""The statistics of an evaluation: `results.json`."""

from __future__ import annotations

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from gem_evaluation.errors import EvaluationError
from gem_evaluation.records import VERSION, Failure, Key, Result, check_version
from gem_evaluation.statistics import Estimate, mean, pass_all, pass_at, success_rate

RESULTS = "results.json"


class Episodes(msgspec.Struct, frozen=True):
    """How many episodes there are of which kind."""

    planned: int
    finished: int
    failed_endpoint: int
    """The model gave no response. Not in any other number."""
    failed_environment: int
    """The environment failed. Not in any other number."""

    @property
    def failed(self) -> int:
        """Of either kind."""
        return self.failed_endpoint + self.failed_environment

    @property
    def left(self) -> int:
        """Not played yet."""
        return self.planned - self.finished - self.failed


class Summary(msgspec.Struct, frozen=True):
    """The statistics of one environment, or of all together. Estimates are `None` where no episode is finished."""

    label: str
    tasks: int
    """Tasks with a finished episode."""
    repeats: int
    """The largest number of finished repeats of a task."""
    episodes: Episodes
    success: Estimate | None
    success_at_least: float | None
    """The mean success if all failed episodes counted as unsuccessful."""
    total_reward: Estimate | None
    """Undiscounted return."""
    pass_at: dict[int, Estimate]
    """The chance that one of `k` repeats succeeds, by `k`."""
    pass_all: dict[int, Estimate]
    """The chance that all of `k` repeats succeed, by `k`."""
    turns: float
    """Mean number of turns of an episode."""
    prompt_tokens: int
    """Sum over all finished episodes, like the next four."""
    completion_tokens: int
    requests: int
    cost: float
    """Dollars."""
    seconds: float
    stop_reasons: dict[str, int]
    invalid_share: float
    """Share of turns whose action the environment could not use."""
    truncated_share: float
    """Share of turns whose response the token limit cut off."""
    tool_calls: float
    """Mean number of tool calls of an episode."""
    tool_success_share: float | None
    """Share of tool calls that did not fail; `None` without a call."""
    prompts: str = ""
    """A hash of the first prompts of all tasks; two evaluations with the same one asked the same."""


class Results(msgspec.Struct, frozen=True):
    """What an evaluation found."""

    model: str
    identity: dict[str, Any]
    """Everything that could change a number."""
    environments: list[Summary]
    together: Summary
    """Over the tasks of all environments."""
    version: int = VERSION

    def __getitem__(self, label: str) -> Summary:
        """The statistics of an environment. Raises `KeyError` where there is none of that label."""
        for one in self.environments:
            if one.label == label:
                return one
        raise KeyError(label)

    def save(self, folder: Path) -> None:
        """Write `results.json`."""
        document = msgspec.json.format(msgspec.json.encode(self))
        partial = folder / f"{RESULTS}.partial"
        partial.write_bytes(document + b"\n")
        partial.rename(folder / RESULTS)


def read_saved(folder: Path) -> Results:
    """The results of a folder.

    Raises:
        EvaluationError: there are none, or of a later version.
    """
    try:
        document = msgspec.json.decode((folder / RESULTS).read_bytes(), type=dict[str, Any])
        check_version(document)
        for summary in (*document["environments"], document["together"]):
            _restore_infinity(summary["total_reward"])
        return msgspec.convert(document, Results, strict=False)
    except (OSError, msgspec.DecodeError, KeyError) as error:
        raise EvaluationError(f"{folder / RESULTS} cannot be read: {error}") from error


def _restore_infinity(estimate: dict[str, float | None] | None) -> None:
    # JSON has no infinity. With one task the interval of the return is the whole line, written as nulls.
    if estimate and estimate["low"] is None:
        estimate |= {"low": -math.inf, "high": math.inf}


def summarized(
    model: str,
    identity: Mapping[str, Any],
    planned: Mapping[str, tuple[int, int]],
    results: Iterable[Result],
    failures: Iterable[Failure],
) -> Results:
    """The statistics of an evaluation.

    Args:
        model: its name.
        identity: everything that could change a number.
        planned: tasks and repeats of each label. Other episodes are left out.
        results: finished episodes.
        failures: episodes that failed and are not finished.
    """
    finished: dict[str, list[Result]] = {label: [] for label in planned}
    failed: dict[str, list[Failure]] = {label: [] for label in planned}
    for result in results:
        if is_planned(result.key, planned):
            finished[result.key.entry].append(result)
    for failure in failures:
        if is_planned(failure.key, planned):
            failed[failure.key.entry].append(failure)
    episodes = {label: tasks * repeats for label, (tasks, repeats) in planned.items()}
    environments = [_summary(label, count, finished[label], failed[label]) for label, count in episodes.items()]
    everything = _summary(
        "together",
        sum(episodes.values()),
        [*chain.from_iterable(finished.values())],
        [*chain.from_iterable(failed.values())],
    )
    return Results(model, dict(identity), environments, everything)


def summary_of(label: str, results: Sequence[Result]) -> Summary:
    """The statistics of these episodes, as if no others were planned."""
    return _summary(label, len(results), results, ())


def is_planned(key: Key, planned: Mapping[str, tuple[int, int]]) -> bool:
    """Whether an episode is one of these tasks and repeats, which are given by label."""
    tasks, repeats = planned.get(key.entry, (0, 0))
    return key.task < tasks and key.repeat < repeats


def by_task(results: Iterable[Result]) -> dict[tuple[str, int], list[Result]]:
    """Finished episodes by label and task, in the order of their repeats."""
    tasks: dict[tuple[str, int], list[Result]] = defaultdict(list)
    for result in sorted(results, key=lambda one: one.key):
        tasks[result.key.entry, result.key.task].append(result)
    return tasks


def _summary(label: str, planned: int, results: Sequence[Result], failures: Sequence[Failure]) -> Summary:
    tasks = by_task(results)
    success = [[one.success for one in task] for task in tasks.values()]
    rewards = [[one.total_reward for one in task] for task in tasks.values()]
    repeats = max(map(len, success), default=0)
    turns = sum(one.turns for one in results)
    calls = sum(one.tool_calls for one in results)
    faults = Counter(one.fault for one in failures)
    return Summary(
        label=label,
        tasks=len(tasks),
        repeats=repeats,
        episodes=Episodes(planned, len(results), faults["endpoint"], faults["environment"]),
        success=success_rate(success) if success else None,
        success_at_least=_at_least(tasks, failures),
        total_reward=mean(rewards) if rewards else None,
        pass_at={k: pass_at(success, k) for k in range(1, repeats + 1)},
        pass_all={k: pass_all(success, k) for k in range(1, repeats + 1)},
        turns=_share(turns, len(results)),
        prompt_tokens=sum(one.prompt_tokens for one in results),
        completion_tokens=sum(one.completion_tokens for one in results),
        requests=sum(one.requests for one in results),
        cost=sum(one.cost for one in results),
        seconds=sum(one.seconds for one in results),
        stop_reasons=dict(Counter(one.stop_reason.value for one in results).most_common()),
        invalid_share=_share(sum(one.invalid for one in results), turns),
        truncated_share=_share(sum(one.truncated for one in results), turns),
        tool_calls=_share(calls, len(results)),
        tool_success_share=sum(one.tool_successes for one in results) / calls if calls else None,
        prompts=_hash_of_prompts(tasks),
    )


def _hash_of_prompts(tasks: Mapping[tuple[str, int], Sequence[Result]]) -> str:
    openings = sorted((task, result.opening) for (_, task), [result, *_] in tasks.items())
    return hashlib.sha256(msgspec.json.encode(openings)).hexdigest()[:16]


def _at_least(tasks: Mapping[tuple[str, int], Sequence[Result]], failures: Sequence[Failure]) -> float | None:
    outcomes: dict[tuple[str, int], list[bool]] = {key: [one.success for one in task] for key, task in tasks.items()}
    for failure in failures:
        outcomes.setdefault((failure.key.entry, failure.key.task), []).append(False)
    return float(np.mean([np.mean(one) for one in outcomes.values()])) if outcomes else None


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
