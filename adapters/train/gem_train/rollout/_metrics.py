"""The numbers every adapter logs about a batch, under the same names."""

from __future__ import annotations

from collections.abc import Sequence

from gem_core.episode import EpisodeSummary, StopReason
from gem_train.rollout._batch import Batch


def episode_metrics(episodes: Sequence[EpisodeSummary], dropped: int = 0) -> dict[str, float]:
    """Averages over episodes and turns; empty if nothing was played.

    What is done about a failed environment does not change what `env/errors` and `stop/<reason>` count: they are over
    all episodes played, dropped ones included. All others are over `episodes`.

    Keys: `episode/return`, `episode/success`, `episode/turns`, `episode/response_tokens`, `stop/<reason>` (share of
    the episodes played), `turn/reward`, `turn/invalid`, `turn/truncated` (shares of turns), `env/errors` (count). If
    the policy wrote summaries also `episode/compactions`. With tools also `episode/tool_calls` (over the episodes with
    tools), and if any was called `tool/success` (share of calls). With several environments also `env/<id>/episodes`
    (count), `env/<id>/return`, `env/<id>/success`, `env/<id>/turns`, `env/<id>/invalid`, `env/<id>/truncated`. With
    matches also `agent/<agent>/return`, `agent/<agent>/success`, `agent/<agent>/turns`, of an agent in all
    environments.

    Args:
        episodes: the episodes of a batch.
        dropped: how many more were played and left out because their environment failed.
    """
    env_ids = sorted({episode.env_id for episode in episodes})
    return {
        **_means(episodes),
        **_ends([*(episode.stop_reason for episode in episodes), *[StopReason.ENV_ERROR] * dropped]),
        **_tool_use(episodes),
        **(_per_environment(episodes, env_ids) if len(env_ids) > 1 else {}),
        **_per_agent(episodes),
    }


def _means(episodes: Sequence[EpisodeSummary]) -> dict[str, float]:
    if not episodes:
        return {}
    count = len(episodes)
    turns = sum(episode.turns for episode in episodes)
    total = sum(episode.total_reward for episode in episodes)
    metrics = {
        "episode/return": total / count,
        "episode/success": sum(episode.success for episode in episodes) / count,
        "episode/turns": turns / count,
        "episode/response_tokens": sum(episode.response_tokens for episode in episodes) / count,
    }
    if any(episode.compactions for episode in episodes):
        metrics["episode/compactions"] = sum(episode.compactions for episode in episodes) / count
    if turns:
        metrics["turn/reward"] = total / turns
        metrics["turn/invalid"] = sum(episode.invalid for episode in episodes) / turns
        metrics["turn/truncated"] = sum(episode.truncated for episode in episodes) / turns
    return metrics


def _ends(reasons: Sequence[StopReason]) -> dict[str, float]:
    if not reasons:
        return {}
    shares = {f"stop/{reason.value}": reasons.count(reason) / len(reasons) for reason in StopReason}
    return {"env/errors": float(reasons.count(StopReason.ENV_ERROR)), **shares}


def _tool_use(episodes: Sequence[EpisodeSummary]) -> dict[str, float]:
    calls = [episode.tool_calls for episode in episodes if episode.tool_calls is not None]
    metrics = {"episode/tool_calls": sum(calls) / len(calls)} if calls else {}
    if any(calls):
        metrics["tool/success"] = sum(episode.tool_successes for episode in episodes) / sum(calls)
    return metrics


def _per_environment(episodes: Sequence[EpisodeSummary], env_ids: Sequence[str]) -> dict[str, float]:
    metrics: dict[str, float] = {}
    for env_id in env_ids:
        own = [episode for episode in episodes if episode.env_id == env_id]
        means = _means(own)
        metrics[f"env/{env_id}/episodes"] = float(len(own))
        metrics |= {f"env/{env_id}/{name}": means[f"episode/{name}"] for name in ("return", "success", "turns")}
        shares = {name: means.get(f"turn/{name}") for name in ("invalid", "truncated")}
        metrics |= {f"env/{env_id}/{name}": share for name, share in shares.items() if share is not None}
    return metrics


def _per_agent(episodes: Sequence[EpisodeSummary]) -> dict[str, float]:
    metrics: dict[str, float] = {}
    for agent in sorted({episode.agent for episode in episodes if episode.agent}):
        means = _means([episode for episode in episodes if episode.agent == agent])
        metrics |= {f"agent/{agent}/{name}": means[f"episode/{name}"] for name in ("return", "success", "turns")}
    return metrics


def batch_metrics(batch: Batch) -> dict[str, float]:
    """`episode_metrics`, and what it took.

    Keys: `rollout/episodes`, `rollout/turns`, `rollout/carried_turns`, `rollout/in_flight`, `rollout/surplus`,
    `rollout/dropped`, `rollout/filtered` (counts), `time/generation`, `time/environment`, `time/paced` (seconds).
    """
    return {
        **episode_metrics([episode.summary() for episode in batch.episodes], batch.dropped),
        "rollout/episodes": float(len(batch.episodes)),
        "rollout/turns": float(batch.turns),
        "rollout/carried_turns": float(batch.carried_turns),
        "rollout/in_flight": float(batch.in_flight),
        "rollout/surplus": float(batch.surplus),
        "rollout/dropped": float(batch.dropped),
        "rollout/filtered": float(batch.filtered),
        "time/generation": batch.policy_seconds,
        "time/environment": batch.env_seconds,
        "time/paced": batch.paced_seconds,
    }
