"""Episodes and their turns as what travels from Oat's actors to its learners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from oat.algorithms.ppo import PPOArgs
from oat.types import TransitionData

from gem_core.rollout import Batch, Episode, EpisodeSummary, Turn


@dataclass
class TurnData(TransitionData):
    """A turn: a row to train on."""

    episode: int = 0
    """Which of the learner's episodes."""
    turn: int = 0
    """Which of the episode's turns."""
    group: int = 0
    """The task that the episode started from, the same on all learners."""

    @property
    def reward(self) -> float:
        """The environment's, with what Oat's flags make of it."""
        return self.rewards[-1]


@dataclass
class EpisodeData(TransitionData):
    """A whole episode, in the place of one of Oat's transitions: what Oat's collector counts and hands on."""

    summary: EpisodeSummary | None = None
    """`None` where it is to count for nothing."""
    dropped: int = 0
    """Episodes that were left out on the way to this one."""
    turns: list[TurnData] = field(default_factory=list[TurnData])

    @classmethod
    def of(cls, episode: Episode, args: PPOArgs, offset: int, info: Mapping[str, float]) -> EpisodeData:
        """An episode to train on.

        Args:
            episode: as it was played.
            args: whose flags say what becomes of responses that were cut off.
            offset: added to its group, to keep those of different actors apart.
            info: metrics of its batch, under the same names for all of it.
        """
        group = episode.group + offset
        turns = [_turn_data(turn, index, group, args) for index, turn in enumerate(episode.turns)]
        return cls(
            prompt=episode.env_id,
            prompt_ids=[],
            response="".join(turn.response for turn in episode.turns),
            response_ids=[token for turn in episode.turns for token in turn.response_ids],
            response_logprobs=[],
            rewards=[episode.total_reward],
            info={**info},
            summary=episode.summary(),
            turns=turns,
        )

    @classmethod
    def nothing(cls, info: Mapping[str, float]) -> EpisodeData:
        """In the place of an episode that was left out."""
        return cls("", [], "", [], [], [0.0], info={**info})


def share_out(batch: Batch, count: int, args: PPOArgs, offset: int) -> list[EpisodeData]:
    """A batch as exactly `count` items, as Oat's collector expects; see `EpisodeData.of`."""
    info = {
        "rollout/carried_turns": float(batch.carried_turns),
        "rollout/in_flight": float(batch.in_flight),
        "rollout/surplus": float(batch.surplus),
        "time/generation": batch.policy_seconds,
        "time/environment": batch.env_seconds,
    }
    items = [EpisodeData.of(episode, args, offset, info) for episode in batch.episodes]
    items += [EpisodeData.nothing(info) for _ in range(count - len(items))]
    items[0].dropped = batch.dropped
    return items


def rows_of(batch: Sequence[EpisodeData]) -> list[TurnData]:
    """The turns of a learner's episodes, which are numbered on the way."""
    for number, episode in enumerate(batch):
        for turn in episode.turns:
            turn.episode = number
    return [turn for episode in batch for turn in episode.turns]


def pad_rows(rows: Sequence[TurnData], count: int, pad_id: int) -> list[TransitionData]:
    """Fill up to `count` rows with rows that are left out of the loss.

    They repeat what is there, so that averages which Oat logs over all rows change little.
    """
    model: Sequence[TransitionData] = rows or [TransitionData("", [pad_id], "", [pad_id], [0.0], [0.0])]
    padding = [_left_out(model[index % len(model)]) for index in range(count - len(rows))]
    return [*rows, *padding]


def _left_out(row: TransitionData) -> TransitionData:
    return TransitionData(
        row.prompt, row.prompt_ids, row.response, row.response_ids, row.response_logprobs, row.rewards, loss_mask=False
    )


def _turn_data(turn: Turn, index: int, group: int, args: PPOArgs) -> TurnData:
    reward = turn.reward
    if turn.truncated:
        fixed = args.non_stop_fixed_reward
        reward = (reward if fixed is None else fixed) + args.non_stop_penalty
    return TurnData(
        prompt=turn.observation,
        prompt_ids=turn.prompt_ids,
        response=turn.response,
        response_ids=turn.response_ids,
        response_logprobs=turn.logprobs or [],
        rewards=[0.0] * (len(turn.response_ids) - 1) + [reward],
        loss_mask=not (args.ignore_no_eos and turn.truncated),
        info={},
        turn=index,
        group=group,
    )
