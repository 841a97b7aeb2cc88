"""The recorded episodes of an evaluation, graded again: `regraded.json`, and its tables.

The file is a `Regrading`:

| field | contents |
| --- | --- |
| `version` | of this format: 1 |
| `identity` | of the evaluation, as in `run.json` |
| `versions` | of Python and gem-core in the replay |
| `environments` | a `Comparison` of each environment: counts, and statistics of the replayed episodes before and now |
| `episodes` | a `Regraded` of each finished episode, in the order of environment, task and repeat |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import msgspec

from gem_core.cli import first_line
from gem_core.episode import StopReason
from gem_evaluation._errors import EvaluationError
from gem_evaluation._records import Key
from gem_evaluation._report import percent
from gem_evaluation.results import Summary

REGRADED = "regraded.json"
VERSION = 2
MAX_SHOWN = 20
"""Rows of a table of episodes."""

ReplayOutcome = Literal["same", "changed", "diverged", "not_deterministic", "failed", "not_built"]
"""What a replay showed.

| outcome | meaning |
| --- | --- |
| `same` | the same rewards, success, ending and observations |
| `changed` | the same observations up to the end; the new rewards, success and ending count |
| `diverged` | an observation before the end differs, or the end comes later; the same in two replays |
| `not_deterministic` | two replays differ from each other |
| `failed` | the environment failed |
| `not_built` | the environment or a tool could not be built: an unknown id, a missing extra, a refused argument |
"""


class Grade(msgspec.Struct, frozen=True):
    """What an environment says about an episode."""

    success: bool
    rewards: list[float]
    """Of each turn."""
    stop_reason: StopReason

    @property
    def total_reward(self) -> float:
        """Undiscounted sum of rewards."""
        return sum(self.rewards)


class Regraded(msgspec.Struct, frozen=True):
    """An episode and its replay."""

    key: Key
    outcome: ReplayOutcome
    reason: str
    """What changed, or why the episode cannot be graded again; empty where all is the same."""
    before: Grade
    now: Grade | None
    """`None` where the episode cannot be graded again."""


class Comparison(msgspec.Struct, frozen=True):
    """The episodes of one environment before and now."""

    label: str
    provenance_before: str
    """Distribution and version of the plugin."""
    provenance_now: str
    """Empty where no plugin has the id."""
    episodes: int
    same: int
    changed: int
    not_graded: int
    """Episodes that cannot be graded again. They are not in the statistics."""
    before: Summary
    """Statistics of the recorded episodes that could be replayed."""
    now: Summary
    """Statistics of the replays. Tokens, cost and seconds are those of the recorded episodes."""


class Regrading(msgspec.Struct, frozen=True):
    """The recorded episodes of an evaluation, graded again."""

    identity: dict[str, Any]
    versions: dict[str, str]
    environments: list[Comparison]
    episodes: list[Regraded]
    version: int = VERSION

    @property
    def same(self) -> bool:
        """Nothing changed, and every episode was replayed."""
        return all(one.outcome == "same" for one in self.episodes)

    def save(self, folder: Path) -> None:
        """Write `regraded.json`. Raises `EvaluationError` if it cannot be written."""
        partial = folder / f"{REGRADED}.partial"
        try:
            partial.unlink(missing_ok=True)
            with partial.open("xb") as file:  # a new file: the folder may have a link of that name, to any place
                file.write(msgspec.json.format(msgspec.json.encode(self)) + b"\n")
            partial.rename(folder / REGRADED)
        except OSError as error:
            raise EvaluationError(f"{folder / REGRADED} cannot be written: {error}") from error


def overview(regrading: Regrading) -> list[dict[str, str]]:
    """A row for each environment."""
    return [
        {
            "environment": one.label,
            "episodes": str(one.episodes),
            "same": str(one.same),
            "changed": str(one.changed),
            "not graded": str(one.not_graded),
            "success before [95 %]": percent(one.before.success),
            "success now [95 %]": percent(one.now.success),
        }
        for one in regrading.environments
    ]


def changes(regrading: Regrading) -> list[dict[str, str]]:
    """A row for each of the first changed episodes."""
    changed = ((one, one.now) for one in regrading.episodes if one.outcome == "changed")
    return [
        {
            "environment": one.key.entry,
            "task": str(one.key.task_id),
            "repeat": str(one.key.repeat),
            "return": f"{one.before.total_reward:.6g} -> {now.total_reward:.6g}",
            "success": f"{_yes(one.before.success)} -> {_yes(now.success)}",
            "changed": one.reason,
        }
        for one, now in _first(changed)
        if now is not None
    ]


def not_graded(regrading: Regrading) -> list[dict[str, str]]:
    """A row for each of the most frequent reasons why episodes cannot be graded again."""
    reasons = Counter((one.key.entry, one.outcome, one.reason) for one in regrading.episodes if one.now is None)
    return [
        {
            "environment": label,
            "episodes": str(count),
            "not graded": outcome.replace("_", " "),
            "reason": first_line(reason),
        }
        for (label, outcome, reason), count in reasons.most_common(MAX_SHOWN)
    ]


def _first(rows: Iterable[Any]) -> Iterator[Any]:
    return islice(rows, MAX_SHOWN)


def _yes(success: bool) -> str:
    return "yes" if success else "no"
