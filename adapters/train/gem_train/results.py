"""The result of an episode, which frameworks carry from the process that plays to the process that trains."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec

from gem_core.episode import Episode, EpisodeSummary
from gem_core.errors import AdapterError
from gem_train.metrics import rollout_metrics

Result = TypeVar("Result", bound="EpisodeResult")


class EpisodeResult(msgspec.Struct, frozen=True):
    """The result of an episode. A dropped episode has neither a summary nor a fatal error."""

    summary: EpisodeSummary | None = None
    fatal: str | None = None
    """An error that must stop the run, for frameworks that would hide the exception itself."""
    others: tuple[EpisodeSummary, ...] = ()
    """In a match, the episodes of the other agents, for frameworks with one result per match."""

    @classmethod
    def of_all(cls: type[Result], episodes: Sequence[Episode]) -> Result:
        """The result of playing a task once: of its episode, or of the episodes of all agents; none if dropped."""
        first, *others = [episode.summary() for episode in episodes] or [None]
        return cls(first, others=tuple(one for one in others if one is not None))

    @property
    def summaries(self) -> list[EpisodeSummary]:
        """The episodes; none without a summary."""
        return [] if self.summary is None else [self.summary, *self.others]

    @property
    def task_id(self) -> int:
        """`EpisodeSummary.task_id`, -1 without a summary."""
        return -1 if self.summary is None else self.summary.task_id

    @property
    def group_key(self) -> int:
        """`EpisodeSummary.group_key`, -1 without a summary."""
        return -1 if self.summary is None else self.summary.group_key

    @property
    def role(self) -> int:
        """`EpisodeSummary.role`, -1 without a summary."""
        return -1 if self.summary is None else self.summary.role

    def encode(self) -> str:
        """The result as text, which no framework mistakes for a metric. ASCII, as an error may hold invalid Unicode."""
        return json.dumps(msgspec.to_builtins(self))

    @classmethod
    def decode(cls: type[Result], text: str) -> Result:
        """The result from the text of `encode`."""
        return msgspec.convert(json.loads(text), cls)


def episode_ids(results: Sequence[EpisodeResult], trained: Sequence[bool]) -> list[str]:
    """`Episode.id` of each episode of a batch, as `TurnTable.episode` counts them; those without turns come last.

    Args:
        results: for each row, the result of its episode.
        trained: for each row, whether it has turns.
    """
    played = [(not turns, result.summary.id) for result, turns in zip(results, trained, strict=True) if result.summary]
    return [*dict.fromkeys(name for _, name in sorted(played, key=lambda one: one[0]))]


def result_metrics(results: Iterable[EpisodeResult], version: int | None = None) -> dict[str, float]:
    """The metrics of a batch of episodes or matches, each given once; see `rollout_metrics`, also for `version`.

    Raises:
        AdapterError: a result has a fatal error.
    """
    found = [*results]
    for result in found:
        if result.fatal is not None:
            raise AdapterError(result.fatal)
    played = [summary for result in found for summary in result.summaries]
    return rollout_metrics(played, sum(result.summary is None for result in found), version)
