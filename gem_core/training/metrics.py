"""Metrics of a batch of episodes, under the names that all adapters use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gem_core.rollout import EpisodeSummary, episode_metrics
from gem_core.training.settings import RowKind


def rollout_metrics(episodes: Sequence[EpisodeSummary], dropped: int) -> dict[str, float]:
    """Averages over episodes and turns, and counts; see `gem_core.rollout.episode_metrics`.

    Args:
        episodes: the episodes that are trained on.
        dropped: number of other episodes, dropped because their environment failed.
    """
    return {
        **episode_metrics(episodes, dropped),
        "rollout/episodes": float(len(episodes)),
        "rollout/turns": float(sum(episode.turns for episode in episodes)),
        "rollout/dropped": float(dropped),
    }


def announcement(advantage: str, gamma: float, row: RowKind, metrics: Mapping[str, float]) -> str:
    """The line that confirms turn-level advantages; `metrics` are those of the first batch."""
    return (
        f"{advantage} active: {metrics['advantage/turns']:.0f} turns from {metrics['rollout/episodes']:.0f} episodes, "
        f"return-to-go mean {metrics['advantage/return_mean']:.3f}, std {metrics['advantage/return_std']:.3f}, gamma "
        f"{gamma}; a row is a{'n episode' if row == 'episode' else ' turn'}"
    )
