"""Per-turn advantages in the place of OpenRLHF's own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from openrlhf.trainer.ppo_utils.experience import Experience
from openrlhf.trainer.ppo_utils.experience_maker import RemoteExperienceMaker
from openrlhf.trainer.ppo_utils.length_penalty import apply_length_penalties

from gem_core.advantages import TurnBatch, advantages_and_returns
from gem_core.registry import advantage_spec
from gem_openrlhf.layout import Places, Turns
from gem_openrlhf.rows import PLAYED, Row


class TurnExperienceMaker(RemoteExperienceMaker):
    """OpenRLHF's, with one advantage per turn over the whole batch.

    One process sees all rows, whatever the number of GPUs. The trainer tells it of each batch first (`expect`), because
    rewards and masks of rows say nothing about turns and episodes.
    """

    metrics: dict[str, float]
    """Of the last batch."""

    def expect(self, turns: Turns) -> None:
        """Prepare for the batch that comes next."""
        self._turns = turns

    @torch.no_grad()
    def compute_advantages_and_returns(self, experiences: list[Experience]) -> list[Experience]:
        """One number per turn, on the turn's own tokens and nowhere else.

        With a critic, `returns` is its target at first tokens and NaN elsewhere; see `workers.py`.

        Raises:
            AdvantageError: as gem-core's estimator.
        """
        turns, name, options = self._turns, self.args.gem.advantage, self.args.algo.advantage
        places = Places.of([one.info.pop(PLAYED) for one in experiences])
        rewards = self._rewards(turns, places, experiences)
        values = None
        if advantage_spec(name).needs_values:
            values = places.firsts([_array(one.values) for one in experiences], len(turns))
        batch = TurnBatch(rewards, turns.episode, turns.turn, turns.group, values)
        advantages, returns, self.metrics = advantages_and_returns(name, batch, gamma=options.gamma, lam=options.lambd)
        self._write(experiences, places, advantages, returns, only_first=values is not None)
        return experiences

    def _rewards(self, turns: Turns, places: Places, experiences: Sequence[Experience]) -> NDArray[np.float64]:
        """The environment's, with what OpenRLHF's own flags do to a reward, for each turn as for a response."""
        shaped = Experience(
            rewards=torch.from_numpy(turns.rewards.copy()),
            response_length=torch.from_numpy(places.lengths(len(turns))),
            truncated=torch.from_numpy(turns.truncated),
        )
        apply_length_penalties([shaped], self.args)
        rewards = shaped.rewards.numpy()
        if self.args.reward.clip_range:
            rewards = rewards.clip(*self.args.reward.clip_range)
        divergence = places.sums([_array(one.kl) for one in experiences], len(turns))
        return rewards - max(self.kl_ctl.value, 0.0) * divergence

    @staticmethod
    def _write(
        experiences: Sequence[Experience],
        places: Places,
        advantages: NDArray[np.float64],
        returns: NDArray[np.float64],
        *,
        only_first: bool,
    ) -> None:
        shapes = [(one.action_mask.shape[0], one.action_mask.shape[1]) for one in experiences]
        tables = places.spread(advantages, shapes), places.spread(returns, shapes, first_only=only_first)
        firsts = places.spread(np.ones_like(returns), shapes, first_only=True)
        for one, advantage, later, first in zip(experiences, *tables, firsts, strict=True):
            one.advantages, one.returns = torch.from_numpy(advantage), torch.from_numpy(later)
            # Of the first turn in a row, as OpenRLHF logs it.
            begins = torch.from_numpy(first).argmax(dim=1, keepdim=True)
            one.info["return"] = one.returns.gather(1, begins).squeeze(1)
            if only_first:
                one.returns[torch.from_numpy(first) == 0] = torch.nan
            # As OpenRLHF's, but a number for a row that was cut off and has no token to train.
            one.info["kl"] = (one.kl * one.action_mask).sum(1) / one.action_mask.sum(1).clamp(min=1)
            one.kl = None  # pyright: ignore[reportAttributeAccessIssue]  # as OpenRLHF does, so that it need not travel


def row_experience(row: Row, turns: Turns) -> Experience:
    """A row as one of OpenRLHF's samples, for which it logs the rewards of the row's turns.

    Args:
        row: the tokens, and where its turns stand.
        turns: those of the batch.
    """
    own = sorted({span.turn for span in row.spans})
    reward = torch.tensor([turns.rewards[own].sum()])
    ids: Any = torch.tensor([row.ids])
    mask: Any = torch.zeros_like(ids)
    present: Any = torch.ones_like(ids)
    for _, start, end in row.spans:
        mask[0, start:end] = 1
    sampled = torch.tensor([sum(end - start for _, start, end in row.spans)])
    logprobs: Any = None if row.logprobs is None else torch.tensor([row.logprobs[1:]])
    return Experience(
        sequences=ids,
        attention_mask=present,
        action_mask=mask[:, 1:],
        rollout_log_probs=logprobs,
        prompts=[""],
        labels=[""],
        images=[None],
        mm_train_inputs=[None],
        rewards=reward,
        scores=reward,
        response_length=sampled,
        truncated=torch.tensor([bool(turns.truncated[own].any())]),
        total_length=torch.tensor([float(len(row.ids))]),
        info={"reward": reward, PLAYED: [row.spans]},
    )


def _array(table: torch.Tensor) -> NDArray[np.float64]:
    return table.double().numpy()
