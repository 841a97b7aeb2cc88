"""Per-turn advantages behind verl's registry of estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from gem_core.training.layout import Layout
from numpy.typing import NDArray
from verl.trainer.ppo.core_algos import register_adv_est

from gem_core.advantages import TurnBatch, advantages_and_returns

ESTIMATOR = "gem"
"""Its name in verl's registry; `algorithm.adv_estimator` says which of gem-core's estimators it stands for."""


class TurnEstimator:
    """One number per turn, on the turn's own tokens and nowhere else.

    verl gives an estimator the rewards and masks of rows, which say nothing about turns and episodes; so the trainer
    tells it of each batch first (`expect`). One process sees the whole batch, whatever the number of GPUs.
    """

    def __init__(self) -> None:
        self._name = ""
        self._gamma = self._lam = 1.0
        self._layout = Layout.of([], [], [])
        self._values: NDArray[np.float64] | None = None
        self.metrics: dict[str, float] = {}
        """Of the last batch."""

    def expect(
        self, layout: Layout, name: str, *, gamma: float, lam: float, values: NDArray[np.float64] | None = None
    ) -> None:
        """Prepare for the batch that verl asks about next.

        Args:
            layout: of its N turns.
            name: gem-core's estimator.
            gamma, lam: per turn.
            values: (N,), the critic's, where the estimator needs them.
        """
        self._layout, self._name, self._gamma, self._lam, self._values = layout, name, gamma, lam, values

    def __call__(
        self, token_level_rewards: torch.Tensor, response_mask: torch.Tensor, **_: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Advantages and returns (rows, width), as verl's estimators give them.

        Args:
            token_level_rewards: (rows, width); a turn's reward is the sum over its tokens, what verl took off for
                divergence included.
            response_mask: (rows, width), 1 for what is trained on.

        Raises:
            AdvantageError: as gem-core's estimator.
        """
        layout = self._layout
        rewards = layout.sums(token_level_rewards.double().numpy())
        batch = TurnBatch(rewards, layout.episode, layout.turn, layout.group, self._values)
        advantages, returns, self.metrics = advantages_and_returns(self._name, batch, gamma=self._gamma, lam=self._lam)
        return self._table(advantages, response_mask), self._table(returns, response_mask)

    def _table(self, numbers: NDArray[np.float64], mask: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(self._layout.spread(numbers, (mask.shape[0], mask.shape[1]))) * mask


TURN_ESTIMATOR = TurnEstimator()
register_adv_est(ESTIMATOR)(TURN_ESTIMATOR)
