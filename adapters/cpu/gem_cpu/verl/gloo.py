"""Weights over gloo, from the processes that train to rollout servers: verl's `checkpoint_engine.backend=gloo`.

verl has such transfers for GPUs and NPUs only. The first process that trains sends, and each server gets everything.
"""

from __future__ import annotations

import pickle
from collections.abc import AsyncIterator, Generator
from datetime import timedelta
from typing import Any

import ray
import torch
from torch.distributed import PrefixStore, ProcessGroupGloo, TCPStore
from verl.checkpoint_engine.base import CheckpointEngine, CheckpointEngineRegistry

TIMEOUT = timedelta(minutes=5)
LAST = b""
"""Stands for the end of the weights."""


@CheckpointEngineRegistry.register("gloo")  # pyright: ignore[reportAttributeAccessIssue]  a function without `self`
class GlooCheckpointEngine(CheckpointEngine):
    """One broadcast per tensor. The methods are verl's, in the order in which verl calls them."""

    def __init__(self, bucket_size: int, is_master: bool = False) -> None:
        del bucket_size  # each tensor is sent by itself
        self._sends = is_master
        self._offered: TCPStore | None = None
        self._store: Any = None
        self._group: Any = None

    def prepare(self) -> dict[str, Any]:
        """In the process that sends, offer a store."""
        if not self._sends:
            return {}
        host = ray.util.get_node_ip_address()
        self._offered = TCPStore(host, 0, is_master=True, wait_for_workers=False, timeout=TIMEOUT)
        return {"host": host, "port": self._offered.port}

    @classmethod
    def build_topology(
        cls, actor_wg_world_size: int, rollout_world_size: int, metadata: list[dict[str, Any]]
    ) -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
        """The arguments of `init_process_group` in each process that trains, and in each server's."""

        def arguments(ranks: list[int]) -> dict[str, list[Any]]:
            count = len(ranks)
            return {"rank": ranks, "size": [rollout_world_size + 1] * count, "store": [store] * count}

        (store,) = filter(None, metadata)
        return arguments([0, *[-1] * (actor_wg_world_size - 1)]), arguments([*range(1, rollout_world_size + 1)])

    def init_process_group(self, *, rank: int, size: int, store: dict[str, Any]) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Join the others; a process with the rank -1 has nothing to send."""
        if rank < 0:
            return
        own = self._offered or TCPStore(store["host"], store["port"], is_master=False, timeout=TIMEOUT)
        self._store = PrefixStore("weights", own)
        self._group = ProcessGroupGloo(PrefixStore("group", own), rank, size, TIMEOUT)

    def finalize(self) -> None:
        """Leave the group."""
        self._group = self._store = self._offered = None

    async def send_weights(
        self, weights: Generator[tuple[str, torch.Tensor], None, None], global_steps: int | None = None
    ) -> None:
        """Send all weights. Each process that trains takes part in gathering them."""
        sent = 0
        for name, weight in weights:
            if self._sends:
                whole = weight.detach().cpu().contiguous()
                self._store.set(str(sent), pickle.dumps((name, whole.shape, whole.dtype)))
                self._broadcast(whole)
                sent += 1
        if self._sends:
            self._store.set(str(sent), LAST)

    async def receive_weights(  # pyright: ignore[reportIncompatibleMethodOverride]  verl iterates over it, too
        self, global_steps: int | None = None
    ) -> AsyncIterator[tuple[str, torch.Tensor]]:
        """The weights, each with its name."""
        got = 0
        while described := self._store.get(str(got)):
            name, shape, dtype = pickle.loads(described)
            weight = torch.empty(shape, dtype=dtype)
            self._broadcast(weight)
            yield name, weight
            got += 1

    def _broadcast(self, tensor: torch.Tensor) -> None:
        # As bytes, because gloo does not know every type.
        self._group.broadcast([tensor.view(-1).view(torch.uint8)]).wait()
