"""The statistics of an evaluation: `results.json`."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from gem_evaluation._errors import EvaluationError
from gem_evaluation._finished import Finished, Rows, by_task, openings, policy_faults, rows_of, stop_reasons
from gem_evaluation._records import UNREADABLE, VERSION, FailedEpisode, Key, PolicyFault, Result, check_version
from gem_evaluation._statistics import Estimate, Success, mean, pass_all, pass_at, success_with_failures

RESULTS = "results.json"
FAIL_ON_ERROR = 0.05
"""Share of failed episodes above which an evaluation has failed."""


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
    success: Success | None
    """With what it would be if the failed episodes had not failed; `str()` of it writes that, too."""
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
    policy_faults: dict[PolicyFault, int]
    """Finished episodes that ended by the policy's own fault, by kind. They are in all numbers."""
    invalid_share: float
    """Share of turns whose action the environment could not use."""
    truncated_share: float
    """Share of turns whose response the token limit cut off."""
    only_thought_share: float
    """Share of turns in which the model thought, and said nothing."""
    tool_calls: float
    """Mean number of tool calls of an episode."""
    tool_success_share: float | None
    """Share of tool calls that did not fail; `None` without a call."""
    prompts: str = ""
    """A hash of the first prompts of all tasks; two evaluations with the same one asked the same."""
    most_common_error: str = ""
    """The first line of the most common error of the failed episodes; empty if none failed."""


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
        EvaluationError: there are none, or of another version.
    """
    try:
        document = msgspec.json.decode((folder / RESULTS).read_bytes(), type=dict[str, Any])
        check_version(document)
        for summary in (*document["environments"], document["together"]):
            _restore_infinity(summary["total_reward"])
        return msgspec.convert(document, Results, strict=False)
    except (OSError, *UNREADABLE) as error:
        raise EvaluationError(f"{folder / RESULTS} cannot be read: {error}") from error


def _restore_infinity(estimate: dict[str, float | None] | None) -> None:
    # JSON has no infinity. With one task the interval of the return is the whole line, written as nulls.
    if estimate and estimate["low"] is None:
        estimate |= {"low": -math.inf, "high": math.inf}


def summarized(
    model: str,
    identity: Mapping[str, Any],
    planned: Mapping[str, tuple[int, int]],
    finished: Finished,
    failures: Iterable[FailedEpisode],
    fail_on_error: float = FAIL_ON_ERROR,
) -> Results:
    """The statistics of an evaluation.

    Args:
        model: its name.
        identity: everything that could change a number.
        planned: tasks and repeats of each label. Other episodes are left out.
        finished: finished episodes.
        failures: episodes that failed and are not finished.
        fail_on_error: share of failed episodes above which success has no estimate.
    """
    failed: dict[str, list[FailedEpisode]] = {label: [] for label in planned}
    for failure in failures:
        if is_planned(failure.key, planned):
            failed[failure.key.entry].append(failure)
    episodes = {label: tasks * repeats for label, (tasks, repeats) in planned.items()}
    tables = finished.tables(planned)
    environments = [
        _summary(label, count, {label: tables[label]}, failed[label], fail_on_error)
        for label, count in episodes.items()
    ]
    everything = [*chain.from_iterable(failed.values())]
    together = _summary("together", sum(episodes.values()), tables, everything, fail_on_error)
    return Results(model, dict(identity), environments, together)


def summary_of(label: str, results: Sequence[Result]) -> Summary:
    """The statistics of these episodes, as if no others were planned."""
    finished = Finished(results)
    tables = {entry: finished.table(entry) for entry in dict.fromkeys(one.key.entry for one in results)}
    return _summary(label, len(results), tables, (), FAIL_ON_ERROR)


def is_planned(key: Key, planned: Mapping[str, tuple[int, int]]) -> bool:
    """Whether an episode is one of these tasks and repeats, which are given by label."""
    tasks, repeats = planned.get(key.entry, (0, 0))
    return key.task_id < tasks and key.repeat < repeats


def _summary(
    label: str, planned: int, tables: Mapping[str, Rows], failures: Sequence[FailedEpisode], fail_on_error: float
) -> Summary:
    rows, success = rows_of(tables.values()), by_task(tables.values(), "success")
    repeats = max(map(len, success), default=0)
    turns, calls = _total(rows, "turns"), _total(rows, "tool_calls")
    faults = Counter(one.fault for one in failures)
    return Summary(
        label=label,
        tasks=len(success),
        repeats=repeats,
        episodes=Episodes(planned, len(rows), faults["endpoint"], faults["environment"]),
        success=success_with_failures(
            _with_failures(tables, failures) if failures else [(one, 0) for one in success], fail_on_error
        ),
        total_reward=mean(by_task(tables.values(), "total_reward")) if success else None,
        pass_at={k: pass_at(success, k) for k in range(1, repeats + 1)},
        pass_all={k: pass_all(success, k) for k in range(1, repeats + 1)},
        turns=_share(turns, len(rows)),
        prompt_tokens=_total(rows, "prompt_tokens"),
        completion_tokens=_total(rows, "completion_tokens"),
        requests=_total(rows, "requests"),
        cost=float(rows["cost"].sum()),
        seconds=float(rows["seconds"].sum()),
        stop_reasons=dict(Counter(one.value for one in stop_reasons(rows)).most_common()),
        policy_faults=dict(Counter(policy_faults(rows)).most_common()),
        invalid_share=_share(_total(rows, "invalid"), turns),
        truncated_share=_share(_total(rows, "truncated"), turns),
        only_thought_share=_share(_total(rows, "only_thought"), turns),
        tool_calls=_share(calls, len(rows)),
        tool_success_share=_total(rows, "tool_successes") / calls if calls else None,
        prompts=_hash_of_prompts(tables.values()),
        most_common_error=_most_common(one.error.partition("\n")[0] for one in failures),
    )


def _most_common(texts: Iterable[str]) -> str:
    """The text that is there most often; of several, the first in alphabetical order."""
    counts = Counter(texts)
    return min(counts, key=lambda text: (-counts[text], text), default="")


def _total(rows: Rows, field: str) -> int:
    return int(rows[field].sum())


def _hash_of_prompts(tables: Iterable[Rows]) -> str:
    asked = sorted(chain.from_iterable(map(openings, tables)))
    return hashlib.sha256(msgspec.json.encode(asked)).hexdigest()[:16]


def _with_failures(tables: Mapping[str, Rows], failures: Sequence[FailedEpisode]) -> list[tuple[Sequence[bool], int]]:
    """Of each task that was played, the successes of its finished episodes, and how many failed."""
    tasks: list[tuple[Sequence[bool], int]] = []
    for label, table in tables.items():
        failed = Counter(one.key.task_id for one in failures if one.key.entry == label)
        successes: list[list[bool]] = [row["success"][row["played"]].tolist() for row in table]
        # A task of which every episode failed may be beyond the table.
        for task in range(max([len(successes), *(number + 1 for number in failed)])):
            played = successes[task] if task < len(successes) else []
            if played or failed[task]:
                tasks.append((played, failed[task]))
    return tasks


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
