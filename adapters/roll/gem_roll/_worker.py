"""ROLL's training worker, with a fixed number of updates per batch."""

from __future__ import annotations

from typing import Any

from roll.distributed.scheduler.decorator import Dispatch, register
from roll.pipeline.agentic.agentic_actor_worker import ActorWorker

ACCUMULATION = "gem_accumulation"
"""Key in a batch's `meta_info`: number of micro-batches of one update on each rank."""


class TurnActorWorker(ActorWorker):
    """Makes a fixed number of updates. ROLL's worker updates per number of rows, and rows depend on turns."""

    @register(dispatch_mode=Dispatch.DP_MP_DISPATCH_FIRST, trace=True, prefetch=False, to_remote=False)
    def train_step(self, data: Any) -> Any:
        """Train on a batch, a `DataProto`. Returns ROLL's metrics."""
        self.worker_config.training_args.gradient_accumulation_steps = data.meta_info[ACCUMULATION]
        return super().train_step(data)
