"""Metrics of a batch of episodes, under the names that all adapters use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gem_train.rollout import EpisodeSummary, episode_metrics
from gem_train.rows import RowKind


def rollout_metrics(episodes: Sequence[EpisodeSummary], dropped: int, version: int | None = None) -> dict[str, float]:
    """Averages over episodes and turns, and counts; see `gem_train.rollout.episode_metrics` and `staleness_metrics`.

    Args:
        episodes: the episodes that are trained on.
        dropped: number of other episodes, dropped because their environment failed.
        version: the policy version of the first update on these episodes, if the framework says it.
    """
    return {
        **episode_metrics(episodes, dropped),
        "rollout/episodes": float(len(episodes)),
        "rollout/turns": float(sum(episode.turns for episode in episodes)),
        "rollout/dropped": float(dropped),
        **({} if version is None else staleness_metrics(episodes, version)),
    }


def staleness_metrics(episodes: Sequence[EpisodeSummary], version: int) -> dict[str, float]:
    """How old the tokens of a batch are, in updates: the version that trains on them minus the one that sampled them.

    Keys: `staleness/mean` (over tokens), `staleness/max`, `staleness/span` (mean over episodes of the newest version
    minus the oldest). Empty if no version is known.

    Args:
        episodes: the episodes that are trained on.
        version: the number of updates before the first update on them.
    """
    known = [episode.versions for episode in episodes if episode.versions]
    if not known:
        return {}
    tokens = sum(count for versions in known for _, count in versions)
    total = sum((version - one) * count for versions in known for one, count in versions)
    return {
        "staleness/mean": total / tokens,
        "staleness/max": float(version - min(versions[0][0] for versions in known)),
        "staleness/span": sum(versions[-1][0] - versions[0][0] for versions in known) / len(known),
    }


def announcement(advantage: str, gamma: float, row: RowKind, metrics: Mapping[str, float], acting: str) -> str:
    """The line that confirms turn-level advantages.

    Args:
        advantage, gamma, row: settings of the run.
        metrics: those of the first batch.
        acting: the framework's own settings that change what is trained; see `gem_train.defaults.acting`.
    """
    return (
        f"{advantage} active: {metrics['advantage/turns']:.0f} turns from {metrics['rollout/episodes']:.0f} episodes, "
        f"return-to-go mean {metrics['advantage/return_mean']:.3f}, std {metrics['advantage/return_std']:.3f}, gamma "
        f"{gamma}; a row is a{'n episode' if row == 'episode' else ' turn'}{'; acting: ' if acting else ''}{acting}"
    )
