"""Wrappers that change what an environment shows, counts or allows."""

from gem_core.wrappers.history import HistoryMode, ObservationHistory
from gem_core.wrappers.statistics import EpisodeStatistics
from gem_core.wrappers.turn_limit import TurnLimit

__all__ = ["EpisodeStatistics", "HistoryMode", "ObservationHistory", "TurnLimit"]
