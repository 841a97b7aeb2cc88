"""What became of an episode, for frameworks that carry it from the process that played to the one that trains."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TypeVar

import msgspec

from gem_core.episode import EpisodeSummary
from gem_core.errors import AdapterError
from gem_core.training.metrics import rollout_metrics

Result = TypeVar("Result", bound="EpisodeResult")


class EpisodeResult(msgspec.Struct, frozen=True):
    """What became of an episode. An episode that was dropped has neither a summary nor a fatal error."""

    summary: EpisodeSummary | None = None
    fatal: str | None = None
    """An error that must stop the run, where the framework would hide the exception itself."""

    @property
    def task(self) -> int:
        """The number of the task that was played, -1 where there is no summary."""
        return -1 if self.summary is None else self.summary.group

    def encode(self) -> str:
        """The result as ASCII text, which no framework takes for a metric; an error may hold invalid Unicode."""
        return json.dumps(msgspec.to_builtins(self))

    @classmethod
    def decode(cls: type[Result], text: str) -> Result:
        """The result in a text that `encode` made."""
        return msgspec.convert(json.loads(text), cls)


def result_metrics(results: Iterable[EpisodeResult]) -> dict[str, float]:
    """The metrics of a batch of episodes, each given once; see `rollout_metrics`.

    Raises:
        AdapterError: a result has a fatal error.
    """
    found = [*results]
    for result in found:
        if result.fatal is not None:
            raise AdapterError(result.fatal)
    played = [result.summary for result in found if result.summary is not None]
    return rollout_metrics(played, len(found) - len(played))
