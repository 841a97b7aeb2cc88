"""Episodes on their way from Oat's actors to its learners, and their turns as Oat's rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from oat.algorithms.ppo import PPOArgs
from oat.types import TransitionData

from gem_core.episode import Episode, EpisodeSummary
from gem_train.results import EpisodeResult, episode_ids
from gem_train.rollout import Batch
from gem_train.rows import Row, TurnSpan, rows_of
from gem_train.turn_table import TurnTable


@dataclass
class EpisodeData(TransitionData):
    """A whole episode. Oat's collector treats it as a transition: counts it, logs its length and passes it on."""

    summary: EpisodeSummary | None = None
    """`None` if the episode was dropped."""
    dropped: int = 0
    """Number of dropped episodes in the batch."""
    rows: list[Row] = field(default_factory=list[Row])
    """A row per token sequence. Every token of the episode is stored once, only here."""
    others: list[EpisodeData] = field(default_factory=lambda: list[EpisodeData]())
    """The other agents of a match. Oat's collector counts a match as one transition."""

    @property
    def each(self) -> list[EpisodeData]:
        """The episode of every agent."""
        return [self, *self.others]

    @classmethod
    def of(cls, episode: Episode, info: dict[str, float]) -> EpisodeData:
        """An episode to train on, with the metrics of its batch."""
        summary = episode.summary()
        return cls(
            prompt=episode.env_id,
            prompt_ids=[],
            response="".join(turn.response for turn in episode.turns),
            response_ids=range(summary.response_tokens),  # pyright: ignore[reportArgumentType]  Oat logs its length
            response_logprobs=[],
            rewards=[summary.total_reward],
            info=info,
            summary=summary,
            rows=rows_of(episode, "episode"),
        )


def batch_items(batch: Batch, count: int) -> list[EpisodeData]:
    """A batch as exactly `count` items, as Oat's collector expects. Items of dropped episodes have no summary."""
    info = {
        "rollout/carried_turns": float(batch.carried_turns),
        "rollout/in_flight": float(batch.in_flight),
        "rollout/surplus": float(batch.surplus),
        "rollout/filtered": float(batch.filtered),
        "time/generation": batch.policy_seconds,
        "time/environment": batch.env_seconds,
    }
    items: list[EpisodeData] = []
    before: Episode | None = None
    for episode in batch.episodes:
        if before is not None and episode.agent and episode.match == before.match:
            items[-1].others.append(EpisodeData.of(episode, info))
        else:
            items.append(EpisodeData.of(episode, info))
        before = episode
    items += [EpisodeData("", [], "", [], [], [0.0], info=info) for _ in range(count - len(items))]
    items[0].dropped = batch.dropped
    return items


def turn_rows(items: Sequence[EpisodeData], args: PPOArgs) -> tuple[list[TransitionData], TurnTable]:
    """The turns of a learner's episodes as Oat's rows, and the table of the turns.

    Oat's tables have a column per predicted token, so their first column is the second token of a row.

    Args:
        items: the episodes that the collector gave the learner, every agent of a match as one.
        args: flags that decide how responses that the token limit cut off are treated.
    """
    turns = [
        (number, item.summary, row, turn)
        for number, item in enumerate(items)
        if item.summary is not None
        for row in item.rows
        for turn in row.turns
    ]
    table = TurnTable.of(
        turns=[[turn] for *_, turn in turns],
        episodes=[number for number, *_ in turns],
        task_ids=[summary.task_id for _, summary, *_ in turns],
        first_columns=[1] * len(turns),
        group_keys=[summary.group_key for _, summary, *_ in turns],
        roles=[summary.role for _, summary, *_ in turns],
    )
    return [_transition(row, turn, args) for *_, row, turn in turns], table


def batch_episodes(items: Sequence[EpisodeData]) -> list[str]:
    """`Episode.id` of each episode, as `TurnTable.episode` of `turn_rows` counts them."""
    return episode_ids([EpisodeResult(item.summary) for item in items], [bool(item.rows) for item in items])


def pad_rows(rows: Sequence[TransitionData], count: int, pad_id: int) -> list[TransitionData]:
    """Fill up to `count` rows with rows that the loss leaves out.

    The added rows repeat the given rows, so that Oat's logged averages over all rows change little.
    """
    models = rows or [TransitionData("", [pad_id], "", [pad_id], [0.0], [0.0])]
    padding = [replace(models[index % len(models)], loss_mask=False) for index in range(count - len(rows))]
    return [*rows, *padding]


def _transition(row: Row, turn: TurnSpan, args: PPOArgs) -> TransitionData:
    """A turn as Oat's transition: without texts, and with the reward on the last token, as Oat's learner reads it."""
    sampled = slice(turn.start, turn.end)
    unknown = [math.nan] * (turn.end - turn.start)
    return TransitionData(
        prompt="",
        prompt_ids=row.ids[: turn.start].tolist(),
        response="",
        response_ids=row.ids[sampled].tolist(),
        response_logprobs=unknown if row.logprobs is None else row.logprobs[sampled].tolist(),
        rewards=[_reward(turn, args)],
        loss_mask=not (args.ignore_no_eos and turn.truncated),
    )


def _reward(turn: TurnSpan, args: PPOArgs) -> float:
    if not turn.truncated:
        return turn.reward
    fixed = args.non_stop_fixed_reward
    return (turn.reward if fixed is None else fixed) + args.non_stop_penalty
