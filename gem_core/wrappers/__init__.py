"""Wrappers that change what an environment shows, counts or allows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gem_core.upstream import no_attribute
from gem_core.wrappers._history import HistoryMode, ObservationHistory, TextTemplate
from gem_core.wrappers._statistics import EpisodeStatistics
from gem_core.wrappers._turn_limit import TurnLimit

__all__ = ["EpisodeStatistics", "HistoryMode", "ObservationHistory", "TextTemplate", "TurnLimit"]


if not TYPE_CHECKING:  # a type checker finds the names that do not exist

    def __getattr__(name: str) -> Any:
        raise no_attribute(__name__, name)
