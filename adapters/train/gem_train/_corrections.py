"""Corrections for tokens that another policy sampled than the one that is trained.

Let `r` be the probability of a unit (a token, a turn, an episode) under the trainer's weights before the update, over
its probability under the policy that sampled it. A correction makes a weight of `r`, and the loss of each token of the
unit is multiplied by this weight. Weights are constants: no gradient passes through them.

| correction | weight | source |
| --- | --- | --- |
| `tis` | `min(r, high)` | truncated importance sampling: Ionides 2008; IMPALA (arXiv:1802.01561) |
| `icepop` | `r` if `low <= r <= high`, otherwise 0 | IcePop, in Ling Team 2025 (arXiv:2510.18855) |
| `decoupled` | `r` | decoupled PPO: Hilton et al. 2021 (arXiv:2110.00641); AReaL (arXiv:2505.24298) |

The ratio of a turn or an episode is the product of the ratios of its tokens. A token whose probability is unknown
counts with ratio 1. The clipping of PPO stays around the trainer's weights before the update, which makes the loss of
`decoupled` that of decoupled PPO: `r * min(ratio * A, clip(ratio) * A)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gem_core.advantages import Gather, gather_local
from gem_train.turn_table import FloatArray, TurnTable

CorrectionKind = Literal["none", "tis", "icepop", "decoupled"]
Unit = Literal["token", "turn", "episode"]

_MAX_LOG_RATIO = 20.0
"""Logarithms of ratios are clipped to this magnitude, so that weights stay finite."""


@dataclass(frozen=True)
class Correction:
    """A correction with its bounds.

    Args:
        kind: `tis`, `icepop` or `decoupled`.
        unit: what a ratio is of.
        low, high: the bounds of the ratio.
    """

    kind: CorrectionKind
    unit: Unit = "token"
    low: float = 0.5
    high: float = 2.0

    def weights(
        self,
        turns: TurnTable,
        trainer: Sequence[NDArray[np.floating]],
        sampler: Sequence[NDArray[np.floating]],
        gather: Gather = gather_local,
    ) -> tuple[list[NDArray[np.float32]], dict[str, float]]:
        """The weight of each token.

        Args:
            turns: the turns of this process; its episodes are complete.
            trainer: tables (rows, width) with the trainer's log-probability of each sampled token.
            sampler: tables of the same shapes with the sampler's. NaN where it is unknown.
            gather: for metrics of all processes.

        Returns:
            Tables of the same shapes, 1 outside of the turns; and metrics over the tokens of all processes:
            `correction/weight` (mean), `correction/limited` (share of tokens whose ratio is outside of the bounds that
            the correction uses), `correction/kl` (mean of the sampler's minus the trainer's log-probability).

        Raises:
            AdvantageError: the tables lack rows or columns of the turns.
        """
        differences = [
            np.nan_to_num(np.asarray(ours, dtype=np.float64) - theirs, nan=0.0)
            for ours, theirs in zip(trainer, sampler, strict=True)
        ]
        ratios = [np.exp(one.clip(-_MAX_LOG_RATIO, _MAX_LOG_RATIO)) for one in self._summed(turns, differences)]
        shapes = [one.shape for one in differences]
        masks = [mask > 0 for mask in turns.spread(np.ones(len(turns)), shapes)]
        tables: list[NDArray[np.float32]] = []
        for ratio, mask in zip(ratios, masks, strict=True):
            tables.append(np.where(mask, self._weight(ratio), 1.0).astype(np.float32))
        return tables, self._metrics(differences, ratios, masks, gather)

    def _summed(self, turns: TurnTable, differences: list[FloatArray]) -> list[FloatArray]:
        """For each token the logarithm of its unit's ratio."""
        if self.unit == "token":
            return differences
        sums = turns.sums(differences)
        if self.unit == "episode" and len(turns):
            sums = np.bincount(turns.episode, sums).astype(np.float64)[turns.episode]
        shapes = [one.shape for one in differences]
        return [np.asarray(table, dtype=np.float64) for table in turns.spread(sums, shapes)]

    def _weight(self, ratio: FloatArray) -> FloatArray:
        if self.kind == "tis":
            return np.minimum(ratio, self.high)
        if self.kind == "icepop":
            return np.where(self._outside(ratio), 0.0, ratio)
        return ratio

    def _outside(self, ratio: FloatArray) -> NDArray[np.bool_]:
        if self.kind == "decoupled":
            return np.zeros(ratio.shape, dtype=np.bool_)
        return (ratio > self.high) | ((ratio < self.low) if self.kind == "icepop" else np.False_)

    def _metrics(
        self,
        differences: list[FloatArray],
        ratios: list[FloatArray],
        masks: list[NDArray[np.bool_]],
        gather: Gather,
    ) -> dict[str, float]:
        own: Any = np.zeros(4)
        for difference, ratio, mask in zip(differences, ratios, masks, strict=True):
            weights, outside = self._weight(ratio)[mask], self._outside(ratio)[mask]
            own += [mask.sum(), weights.sum(), outside.sum(), -difference[mask].sum()]
        count, weight, limited, kl = np.sum(gather(own), axis=0).tolist()
        if not count:
            return {}
        return {
            "correction/weight": weight / count,
            "correction/limited": limited / count,
            "correction/kl": kl / count,
        }
