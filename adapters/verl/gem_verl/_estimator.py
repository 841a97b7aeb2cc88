"""Per-turn advantages behind verl's registry of estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from verl.trainer.ppo.core_algos import register_adv_est

from gem_core.advantages import advantages_and_returns
from gem_train.turn_table import TurnTable

ESTIMATOR = "gem"
"""Name in verl's registry. `algorithm.adv_estimator` names the gem-core estimator that it calls."""


class TurnEstimator:
    """One advantage per turn, on the turn's own tokens only.

    verl gives an estimator the rewards and masks of rows, which do not show turns and episodes. So the trainer passes
    the turns of each batch first (`expect`). One process has the whole batch, whatever the number of GPUs.
    """

    def __init__(self) -> None:
        self._name = ""
        self._gamma = self._lam = 1.0
        self._table = TurnTable.of([], [], [])
        self._values: NDArray[np.float64] | None = None
        self._memory: dict[str, Any] = {}
        self.metrics: dict[str, float] = {}
        """The metrics of the last batch."""

    def expect(
        self, table: TurnTable, name: str, *, gamma: float, lam: float, values: NDArray[np.float64] | None = None
    ) -> None:
        """Prepare for the next batch.

        Args:
            table: the N turns of the batch.
            name: name of the gem-core estimator.
            gamma, lam: discount and lambda, per turn.
            values: (N,), the values of the critic, if the estimator needs them.
        """
        self._table, self._name, self._gamma, self._lam, self._values = table, name, gamma, lam, values

    def __call__(
        self, token_level_rewards: torch.Tensor, response_mask: torch.Tensor, **_: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Advantages and returns (rows, width), as verl's estimators return them.

        Args:
            token_level_rewards: (rows, width). The reward of a turn is the sum over its tokens, including verl's KL
                penalty.
            response_mask: (rows, width), 1 for trained tokens.

        Raises:
            AdvantageError: as gem-core's estimator.
        """
        rewards = self._table.sums([token_level_rewards.double().numpy()])
        advantages, returns, self.metrics = advantages_and_returns(
            self._name,
            self._table.batch(rewards, self._values),
            gamma=self._gamma,
            lam=self._lam,
            memory=self._memory,
        )
        return self._on_tokens(advantages, response_mask), self._on_tokens(returns, response_mask)

    def _on_tokens(self, numbers: NDArray[np.float64], mask: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(self._table.spread(numbers, [mask.shape])[0]) * mask


TURN_ESTIMATOR = TurnEstimator()
register_adv_est(ESTIMATOR)(TURN_ESTIMATOR)
