"""What TRL's loss made of a batch, for the records of a run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from gem_core.training.recording import report_update
from gem_core.training.turn_table import FloatArray, TurnTable


class BatchRecord:
    """Gathers the numbers of the loss, micro-batch by micro-batch, and reports the update once all rows were seen.

    Args:
        number: the update, counted from 1.
        turns: the turns of the batch.
        episodes: `Episode.id` of each episode.
        advantages: float (rows, tokens), as the loss gets them.
        returns: float (N,), the returns-to-go of the turns.
        rank, ranks: this process, and how many train.
    """

    def __init__(
        self,
        number: int,
        turns: TurnTable,
        episodes: Sequence[str],
        advantages: torch.Tensor,
        returns: FloatArray,
        rank: int,
        ranks: int,
    ) -> None:
        self._number = number
        self._turns = turns
        self._episodes = episodes
        self._advantages = advantages.cpu().numpy()
        self._returns = returns
        self._place = (rank, ranks)
        self._logprobs = np.full(self._advantages.shape, np.nan, dtype=np.float32)
        self._entropies = self._logprobs.copy()
        self._unseen = set(range(len(self._advantages)))
        self._reported = False

    def add(self, rows: torch.Tensor, logprobs: torch.Tensor, entropies: torch.Tensor | None) -> None:
        """Add a micro-batch; of several passes over a row, the first counts.

        Args:
            rows: int (B,), rows of the batch.
            logprobs, entropies: float (B, tokens), of the trainer.
        """
        for place, row in enumerate(rows.tolist()):
            if row in self._unseen:
                self._unseen.discard(row)
                self._logprobs[row] = _array(logprobs[place])
                if entropies is not None:
                    self._entropies[row] = _array(entropies[place])
        if not self._unseen:
            self.report()

    def report(self) -> None:
        """Report the update, with NaN for rows that the loss did not see. Safe to call twice."""
        if self._reported:
            return
        self._reported = True
        rank, ranks = self._place
        report_update(
            self._number,
            self._turns,
            self._episodes,
            advantages=[self._advantages],
            returns=self._returns,
            logprobs=[self._logprobs],
            entropies=[self._entropies],
            rank=rank,
            ranks=ranks,
        )


def _array(numbers: torch.Tensor) -> np.ndarray:
    return numbers.detach().float().cpu().numpy()
