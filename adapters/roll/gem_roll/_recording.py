"""What ROLL's loss makes of a batch, for the records of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gem_roll._rows import RowMetadata
from gem_train.recording import needs_token_values, report_update
from gem_train.results import episode_ids
from gem_train.turn_table import FloatArray, TurnTable

ROWS = "gem_rows"
"""Column of a batch: the number of each row, so that a row is known after ROLL has reordered them."""

ENTROPIES = "gem_entropies"
"""Column of a batch: the entropy at each token, which ROLL computes with the log-probabilities and drops."""


@dataclass(frozen=True)
class BatchRecord:
    """The turns of a batch, kept until ROLL trains on them."""

    turns: TurnTable
    """In the order of the rows when the batch was complete."""
    episodes: Sequence[str]
    """`Episode.id` of each episode."""
    returns: FloatArray
    """(N,), the returns-to-go of the turns."""
    version: int
    """Updates of the policy before this batch."""

    @classmethod
    def begin(
        cls, batch: Any, turns: TurnTable, metadata: Sequence[RowMetadata], returns: FloatArray, version: int
    ) -> BatchRecord:
        """Number the rows of a batch.

        Args:
            batch: ROLL's `DataProto`; copies of rows come after the rows themselves.
            turns: the turns of the rows.
            metadata: the metadata of each row that is no copy.
            returns: (N,), the returns-to-go of the turns.
            version: updates of the policy before this batch.
        """
        batch.non_tensor_batch[ROWS] = np.arange(len(batch)).astype(object)
        return cls(turns, episode_ids(metadata, [bool(one.turns) for one in metadata]), returns, version)

    def report(self, batch: Any) -> None:
        """Report the update that is about to begin.

        Args:
            batch: what the actor trains on, in any order of rows.
        """
        tokens = needs_token_values()
        report_update(
            batch.meta_info["global_step"] + 1,
            self.turns.reordered(batch.non_tensor_batch[ROWS].tolist()),
            self.episodes,
            advantages=[_array(batch.batch["advantages"])],
            returns=self.returns,
            logprobs=[_array(batch.batch["old_log_probs"])] if tokens else None,
            entropies=[_array(batch.batch.pop(ENTROPIES))] if tokens else None,
            version=self.version,
        )


def _array(table: Any) -> NDArray[np.float64]:
    return table.double().numpy()
