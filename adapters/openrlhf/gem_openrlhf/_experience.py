"""Per-turn advantages in place of OpenRLHF's own."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from openrlhf.trainer.ppo_utils import experience_maker
from openrlhf.trainer.ppo_utils.experience import Experience
from openrlhf.trainer.ppo_utils.length_penalty import apply_length_penalties

from gem_core.advantages import advantages_and_returns
from gem_core.plugins import manager
from gem_core.registry import advantage_spec
from gem_openrlhf._averages import safe_averages
from gem_openrlhf._images import training_inputs
from gem_openrlhf._rows import EpisodeRows
from gem_train.recording import report_update
from gem_train.results import episode_ids
from gem_train.rollout import ImageReader
from gem_train.rows import Row, cut_rows
from gem_train.turn_table import TurnTable


def training_rows(results: Sequence[EpisodeRows], multiple: int, ranks: int) -> tuple[list[Row], TurnTable]:
    """The rows of a batch, cut so that their number is a multiple.

    Args:
        results: the results of the episodes.
        multiple: the number of rows becomes a multiple of this.
        ranks: number of equal parts into which OpenRLHF divides the rows. Each part gets its share of rows without
            turns.

    Returns:
        The rows, and their turns in the columns of OpenRLHF's tables, where column `p` stands for token `p + 1`.
    """
    owned = [(number, row) for number, one in enumerate(results) for row in one.rows]
    parts = cut_rows([row for _, row in owned], multiple)
    parts = [part for rank in range(ranks) for part in parts[rank::ranks]]
    owners = [results[owned[source][0]] for source, _ in parts]
    table = TurnTable.of(
        [row.turns for _, row in parts],
        episodes=[owned[source][0] for source, _ in parts],
        task_ids=[one.task_id for one in owners],
        first_columns=[1] * len(parts),
        group_keys=[one.group_key for one in owners],
        roles=[one.role for one in owners],
    )
    return [row for _, row in parts], table


def batch_episodes(results: Sequence[EpisodeRows], turns: TurnTable) -> list[str]:
    """`Episode.id` of each episode of a batch, as `TurnTable.episode` of `training_rows` counts them."""
    trained: list[Any] = [*turns.names]
    ordered = [results[number] for number in [*trained, *range(len(results))]]
    return episode_ids(ordered, [True] * len(trained) + [False] * len(results))


class TurnExperienceMaker(experience_maker.RemoteExperienceMaker):
    """OpenRLHF's experience maker, with one advantage per turn over the whole batch.

    One process has all rows, whatever the number of GPUs. The trainer passes the turns of each batch first (`expect`),
    because rewards and masks of rows do not show turns and episodes.
    """

    metrics: dict[str, float]
    """The metrics of the last batch."""

    @functools.cached_property
    def _memory(self) -> dict[str, Any]:
        return {}

    def expect(self, turns: TurnTable, batch: int, version: int, episodes: Sequence[str]) -> None:
        """Prepare for the batch that comes next.

        Args:
            turns: the turns of the batch.
            batch: the number of the batch, counted from 1.
            version: updates of the policy before it.
            episodes: `Episode.id` of each episode.
        """
        self._turns, self._number, self._version, self._episodes = turns, batch, version, episodes

    def make_experience(self, samples_list: list[Experience]) -> list[Experience]:
        """OpenRLHF's method, which averages over the tokens of each row."""
        with safe_averages(experience_maker):
            return super().make_experience(samples_list)

    @torch.no_grad()
    def compute_advantages_and_returns(self, experiences: list[Experience]) -> list[Experience]:
        """One advantage per turn, on the turn's own tokens only.

        With a critic, `returns` has its targets at first tokens and NaN elsewhere; see `workers.py`.

        Raises:
            AdvantageError: as gem-core's estimator.
        """
        turns, name, options = self._turns, self.args.gem.advantage, self.args.algo.advantage
        critic = advantage_spec(name).needs_values
        values = turns.firsts([_array(one.values) for one in experiences]) if critic else None
        divergence = turns.sums([_array(one.kl) for one in experiences])
        batch = turns.batch(self._rewards() - max(self.kl_ctl.value, 0.0) * divergence, values)
        advantages, returns, self.metrics = advantages_and_returns(
            name, batch, gamma=options.gamma, lam=options.lambd, memory=self._memory
        )
        self._write(experiences, advantages, returns, only_first=critic)
        if manager.listens("gem_update"):
            self._record(experiences, returns)
        mean = float(divergence.sum() / turns.length.sum())
        for one in experiences:
            # OpenRLHF averages over rows and adapts its coefficient to the mean; how rows are cut must not matter.
            one.info["kl"] = torch.full((len(one.sequences),), mean)
            one.kl = None  # pyright: ignore[reportAttributeAccessIssue]  # as OpenRLHF does, so that it need not travel
        return experiences

    def _record(self, experiences: Sequence[Experience], returns: NDArray[np.float64]) -> None:
        report_update(
            self._number,
            self._turns,
            self._episodes,
            advantages=[_array(one.advantages) for one in experiences],
            returns=returns,
            logprobs=[_array(one.action_log_probs) for one in experiences],
            version=self._version,
        )

    def _rewards(self) -> NDArray[np.float64]:
        """The environment's rewards, after OpenRLHF's own flags for rewards, which apply to each turn as a response."""
        shaped = Experience(
            rewards=torch.from_numpy(self._turns.reward.copy()),
            response_length=torch.from_numpy(self._turns.length),
            truncated=torch.from_numpy(self._turns.truncated),
        )
        apply_length_penalties([shaped], self.args)
        rewards = shaped.rewards.numpy()
        return rewards.clip(*self.args.reward.clip_range) if self.args.reward.clip_range else rewards

    def _write(
        self,
        experiences: Sequence[Experience],
        advantages: NDArray[np.float64],
        returns: NDArray[np.float64],
        *,
        only_first: bool,
    ) -> None:
        turns, shapes = self._turns, [tuple(one.action_mask.shape) for one in experiences]
        tables = turns.spread(advantages, shapes), turns.spread(returns, shapes, first_only=only_first)
        firsts = turns.spread(np.ones_like(returns), shapes, first_only=True)
        for one, advantage, later, first in zip(experiences, *tables, firsts, strict=True):
            one.advantages, one.returns = torch.from_numpy(advantage), torch.from_numpy(later)
            # For the first turn in a row, as OpenRLHF logs it.
            begins = torch.from_numpy(first).argmax(dim=1, keepdim=True)
            one.info["return"] = one.returns.gather(1, begins).squeeze(1)
            if only_first:
                one.returns[torch.from_numpy(first) == 0] = torch.nan


def row_experience(row: Row, images: ImageReader | None = None) -> Experience:
    """A row as a sample of OpenRLHF, which logs the rewards of the row's turns for it.

    Args:
        row: the row.
        images: reads images for the model; `None` for a model that reads text only.
    """
    reward = torch.tensor([sum(turn.reward for turn in row.turns)], dtype=torch.float64)
    ids: Any = torch.tensor([row.ids.tolist()])
    present: Any = torch.ones_like(ids)
    mask: Any = torch.tensor([row.mask[1:]])
    logprobs: Any = None if row.logprobs is None else torch.tensor([row.logprobs[1:].tolist()])
    return Experience(
        sequences=ids,
        attention_mask=present,
        action_mask=mask,
        rollout_log_probs=logprobs,
        prompts=[""],
        labels=[""],
        images=[None],
        mm_train_inputs=[training_inputs(row, images)],
        rewards=reward,
        scores=reward,
        response_length=mask.sum(1),
        truncated=torch.tensor([any(turn.truncated for turn in row.turns)]),
        total_length=torch.tensor([float(len(row.ids))]),
        info={"reward": reward},
    )


def _array(table: torch.Tensor) -> NDArray[np.float64]:
    return table.double().numpy()
