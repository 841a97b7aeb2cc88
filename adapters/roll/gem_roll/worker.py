"""ROLL's training worker, making as many updates per batch as it is told."""

from __future__ import annotations

from typing import Any

from roll.distributed.scheduler.decorator import Dispatch, register
from roll.pipeline.agentic.agentic_actor_worker import ActorWorker

ACCUMULATION = "gem_accumulation"
"""Key in a batch's `meta_info`: micro-batches of one update on each rank."""


class TurnActorWorker(ActorWorker):
    """ROLL makes an update of a fixed number of rows, so their number would depend on how many turns a batch has."""

    @register(dispatch_mode=Dispatch.DP_MP_DISPATCH_FIRST, trace=True, prefetch=False, to_remote=False)
    def train_step(self, data: Any) -> Any:
        """Train on a batch, a `DataProto`; returns ROLL's metrics."""
        self.worker_config.training_args.gradient_accumulation_steps = data.meta_info[ACCUMULATION]
        return super().train_step(data)
