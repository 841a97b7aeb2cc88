"""Imported by a run (`gem.modules`): it trains with the machinery of `gem.max_staleness`, and a bound of 0."""

from __future__ import annotations

from gem_verl._ahead import BatchesAhead
from gem_verl._trainer import TurnTrainer


def _on_train_begin(self: TurnTrainer) -> None:
    self._ahead = BatchesAhead(0, self.total_training_steps - self.global_steps + 1)


TurnTrainer.on_train_begin = _on_train_begin
