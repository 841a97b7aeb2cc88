"""Episodes as people read them."""

from __future__ import annotations

from typing import Any

from gem_core.episode import Episode
from gem_train.rollout import as_utf8


def messages(episode: Episode) -> list[dict[str, str]]:
    """The conversation, whole, without a system message, which episodes do not have."""
    found: list[dict[str, str]] = []
    for turn in episode.turns:
        found.append({"role": "user", "content": as_utf8(turn.observation)})
        found.append({"role": "assistant", "content": as_utf8(turn.response)})
    if episode.final_observation:
        found.append({"role": "user", "content": as_utf8(episode.final_observation)})
    return found


def as_text(episode: Episode) -> str:
    """The conversation as one text."""
    return "\n\n".join(f"[{one['role']}]\n{one['content']}" for one in messages(episode))


def facts(episode: Episode) -> dict[str, Any]:
    """What is known about an episode besides its conversation."""
    return {
        "env_id": episode.env_id,
        "task_id": episode.task_id,
        "data_index": episode.data_index,
        "seed": str(episode.seed),  # 64 bits, of which JSON keeps 53
        "success": episode.success,
        "return": episode.total_reward,
        "turns": len(episode.turns),
        "stop_reason": episode.stop_reason.value,
        "error": None if episode.error is None else as_utf8(episode.error),
    }
