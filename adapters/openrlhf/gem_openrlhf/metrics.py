"""The numbers of a batch, under the names that all adapters use."""

from __future__ import annotations

from collections.abc import Sequence

from gem_core.rollout import episode_metrics
from gem_openrlhf.rows import Played


def rollout_metrics(batch: Sequence[Played]) -> dict[str, float]:
    """Averages over episodes and turns, and counts; see `gem_core.rollout.episode_metrics`."""
    episodes = [one.episode for one in batch if one.episode is not None]
    return {
        **episode_metrics(episodes),
        "rollout/episodes": float(len(episodes)),
        "rollout/turns": float(sum(episode.turns for episode in episodes)),
        "rollout/dropped": float(sum(one.episode is None for one in batch)),
    }
