"""Episodes as verl's training rows, and the metadata that a row carries through verl."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from transfer_queue import KVBatchMeta
from verl.experimental.agent_loop.agent_loop import AgentLoopMetrics, AgentLoopOutput

from gem_train.images import pil_images
from gem_train.results import EpisodeResult, episode_ids
from gem_train.rollout import Episode
from gem_train.rows import Row, RowKind, rows_of
from gem_train.turn_table import TurnTable
from gem_verl._images import NO_TEXT

RESULT = "gem"
"""Key of the encoded `EpisodeResult` in `reward_extra_info`, which verl keeps in training and validation."""

TURNS = "turns"
"""Key of a row's turns in `extra_fields`, which differ between the rows of an episode. verl copies
`reward_extra_info` from the last row of an episode to the others."""


AGENT = "agent"
"""Key of the position of a row's episode among `EpisodeResult.summaries`, in `extra_fields`."""


class TurnOutput(AgentLoopOutput):
    """A row with the reward of each turn on the turn's last token."""

    token_rewards: list[float]
    """One reward per response token."""

    def as_dict(self) -> dict[str, Any]:
        """verl's fields, with one reward per token in place of one per row."""
        fields = super().as_dict()
        for name in ("multi_modal_data", "mm_processor_kwargs"):  # verl has used them, and would store them
            del fields[name]
        fields["rm_scores"] = torch.tensor(fields.pop("token_rewards"), dtype=torch.float32)
        return fields


def episode_rows(
    episodes: Sequence[Episode], kind: RowKind, fields: Mapping[str, Any], metrics: AgentLoopMetrics
) -> list[AgentLoopOutput]:
    """The rows of an episode, or of the agents of a match.

    Args:
        episodes: a finished episode, or those of a finished match.
        kind: what a row is.
        fields: `extra_fields` that verl needs in every row.
        metrics: metrics of verl.
    """
    result = EpisodeResult.of_all(episodes)
    # The same in all rows of a match, because verl makes it so: the numbers of the first agent, the results of all.
    first = result.summaries[0]
    info = {"acc": float(first.success), "return": first.total_reward, RESULT: result.encode()}
    return [
        TurnOutput(
            prompt_ids=row.prompt_ids,
            response_ids=row.completion_ids,
            response_mask=row.completion_mask,
            response_logprobs=row.completion_logprobs,
            token_rewards=_token_rewards(row),
            reward_score=summary.total_reward,
            num_turns=summary.turns,
            multi_modal_data={"images": pil_images(one.uri for one in row.images)} if row.images else {},
            mm_processor_kwargs=NO_TEXT,
            metrics=metrics,
            extra_fields={**fields, TURNS: row.turns, AGENT: agent, "reward_extra_info": info},
        )
        for agent, (episode, summary) in enumerate(zip(episodes, result.summaries, strict=True))
        for row in rows_of(episode, kind)
    ]


def report_row(result: EpisodeResult, fields: Mapping[str, Any]) -> AgentLoopOutput:
    """A row that trains nothing and carries the result of an episode without turns.

    Without such a row, verl would lose the episode, and a batch without rows stops verl.
    """
    # NaN for a fatal error, so that verl's filter of groups with equal numbers does not remove the row.
    nothing = math.nan if result.fatal else 0.0
    summary = result.summary
    success, total = (summary.success, summary.total_reward) if summary else (nothing, nothing)
    info: dict[str, Any] = {"acc": float(success), "return": total, RESULT: result.encode()}
    return AgentLoopOutput(
        prompt_ids=[0],  # an arbitrary token that every vocabulary has
        response_ids=[0],
        response_mask=[0],
        response_logprobs=[0.0],
        reward_score=nothing,
        num_turns=0,  # with the default, verl would drop the field and then miss the column
        metrics=AgentLoopMetrics(),
        extra_fields={**fields, TURNS: [], AGENT: 0, "reward_extra_info": info},
    )


def batch_results(batch: KVBatchMeta, extra: Sequence[Mapping[str, Any]]) -> list[EpisodeResult]:
    """The results of a batch, one per episode or match.

    Args:
        batch: has the names of the rows, `<task_id>_<episode of the task>_<row of the episode>`.
        extra: the extra fields of each row; empty for padding rows of verl.
    """
    rows = zip(_episodes(batch), extra, strict=True)
    return [_results(fields) for fields in {episode: fields for episode, fields in rows if fields}.values()]


def batch_table(batch: KVBatchMeta, extra: Sequence[Mapping[str, Any]]) -> TurnTable:
    """The turns of a batch, in the columns of verl's tables, which leave out prompts. Arguments as `batch_results`."""
    turns = [fields.get(TURNS, []) for fields in extra]
    firsts = [tag["prompt_len"] for tag in batch.tags]
    results = [_result(fields) if fields else EpisodeResult() for fields in extra]
    return TurnTable.of(
        turns,
        [(episode, fields.get(AGENT, 0)) for episode, fields in zip(_episodes(batch), extra, strict=True)],
        [one.task_id for one in results],
        firsts,
        group_keys=[one.group_key for one in results],
        roles=[one.role for one in results],
    )


def batch_episodes(extra: Sequence[Mapping[str, Any]]) -> list[str]:
    """`Episode.id` of each episode, as `TurnTable.episode` of `batch_table` counts them; see `batch_results`."""
    rows = [fields for fields in extra if fields]
    return episode_ids([_result(fields) for fields in rows], [bool(fields[TURNS]) for fields in rows])


def _episodes(batch: KVBatchMeta) -> list[str]:
    return [key.rpartition("_")[0] for key in batch.keys]


def _results(fields: Mapping[str, Any]) -> EpisodeResult:
    return EpisodeResult.decode(fields["reward_extra_info"][RESULT])


def _result(fields: Mapping[str, Any]) -> EpisodeResult:
    """The result of the agent that a row belongs to."""
    found = _results(fields)
    return EpisodeResult(found.summaries[fields[AGENT]]) if found.others else found


def _token_rewards(row: Row) -> list[float]:
    rewards = [0.0] * (len(row.ids) - row.prompt_length)
    for turn in row.turns:
        rewards[turn.end - row.prompt_length - 1] = turn.reward
    return rewards
