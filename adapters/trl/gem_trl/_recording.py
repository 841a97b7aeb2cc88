"""What TRL's loss made of a batch, for the records of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from gem_train.recording import log_exceptions, needs_token_values, report_update
from gem_train.turn_table import FloatArray, TurnTable


@dataclass(frozen=True)
class TrainedBatch:
    """A batch as the loss gets it."""

    turns: TurnTable
    episodes: Sequence[str]
    """`Episode.id` of each episode, as the table counts them."""
    without_turns: Sequence[str]
    """`Episode.id` of the other episodes, which belong to the first update on the batch."""
    advantages: torch.Tensor
    """(rows, tokens)."""
    returns: FloatArray
    """(N,), the return-to-go of each turn."""


class LossRecorder(TrainerCallback):
    """Gathers the numbers of the loss, micro-batch by micro-batch, and reports them after each update.

    A batch may serve several updates. Each is reported with the rows that its loss saw, as it saw them first.

    Args:
        rank, ranks: this process, and how many train.
    """

    def __init__(self, rank: int, ranks: int) -> None:
        self._place = {"rank": rank, "ranks": ranks}
        self._batch: TrainedBatch | None = None
        self._others: Sequence[str] = ()
        self._seen: dict[int, tuple[np.ndarray | None, np.ndarray | None]] = {}

    def begin(self, batch: TrainedBatch) -> None:
        """Take the batch that is trained from now on."""
        self._batch, self._others = batch, batch.without_turns
        self._seen = {}

    def add(self, rows: torch.Tensor, logprobs: torch.Tensor | None, entropies: torch.Tensor | None) -> None:
        """Add a micro-batch.

        Args:
            rows: int (B,), the rows of the batch.
            logprobs, entropies: float (B, tokens), of the trainer.
        """
        tokens = needs_token_values()
        tables = [_array(table) if tokens and table is not None else None for table in (logprobs, entropies)]
        for place, row in enumerate(rows.tolist()):
            first, second = (None if table is None else table[place] for table in tables)
            self._seen.setdefault(row, (first, second))

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: Any) -> None:
        """Report the update that has just been made."""
        batch, seen, self._seen = self._batch, self._seen, {}
        if batch is None or not seen:
            return
        with log_exceptions():
            own = np.isin(batch.turns.row, [*seen])
            numbers, counted = np.unique(batch.turns.episode[own], return_inverse=True)
            shape = tuple(batch.advantages.shape)
            report_update(
                state.global_step,
                replace(batch.turns.only(own), episode=counted),
                [*(batch.episodes[int(number)] for number in numbers), *self._others],
                advantages=[_array(batch.advantages)],
                returns=batch.returns[own],
                logprobs=_table({row: first for row, (first, _) in seen.items()}, shape),
                entropies=_table({row: second for row, (_, second) in seen.items()}, shape),
                **self._place,
            )
        self._others = ()


def _table(rows: dict[int, np.ndarray | None], shape: tuple[int, ...]) -> list[np.ndarray] | None:
    known = {row: numbers for row, numbers in rows.items() if numbers is not None}
    if not known:
        return None
    table = np.full(shape, np.nan, dtype=np.float32)
    for row, numbers in known.items():
        table[row] = numbers
    return [table]


def _array(numbers: torch.Tensor) -> np.ndarray:
    return numbers.detach().float().cpu().numpy()
