"""Runs that were never played, for tests and benchmarks of the viewer."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from gem_core.episode import Episode, EpisodeSummary, StopReason, TokenSequence, Turn, as_logprobs, as_token_ids


class RecordedSummary(msgspec.Struct, frozen=True):
    id: str
    summary: EpisodeSummary
    task: int | None
    split: str
    update: int | None


class Trained(msgspec.Struct, frozen=True):
    update: int
    advantages: list[float]
    returns: list[float]
    logprobs: list[Any]
    entropies: list[Any]


class RecordedEpisode(msgspec.Struct, frozen=True):
    summary: RecordedSummary
    episode: Episode
    trained: Trained | None


@dataclass
class Records:
    name: str
    kind: str
    episodes: list[RecordedEpisode]
    settings: dict[str, Any] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    metrics: list[dict[str, float]] = field(default_factory=list)
    texts: dict[int, str] = field(default_factory=dict)
    gaps: list[str] = field(default_factory=list)

    @property
    def summaries(self) -> list[RecordedSummary]:
        return [one.summary for one in self.episodes]

    def episode(self, index: int) -> RecordedEpisode:
        return self.episodes[index]

    def refresh(self) -> bool:
        return False
