"""verl's own code from the agent loop's output to the advantages, in one process: TransferQueue is a dictionary."""

from __future__ import annotations

import asyncio
import inspect
import random
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import transfer_queue
from omegaconf import DictConfig
from tensordict import NonTensorStack, TensorDict
from transfer_queue import KVBatchMeta
from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopWorkerTQ

from gem_verl._trainer import TurnTrainer


class MemoryQueue:
    """The part of TransferQueue that verl and the adapter use, with its observed behavior.

    Tensors of one dimension come back as jagged rows, whatever their lengths. A field that one of the rows lacks is
    dropped silently.
    """

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, Any]] = {}
        self.tags: dict[str, dict[str, Any]] = {}

    def install(self, monkeypatch: pytest.MonkeyPatch) -> MemoryQueue:
        for name in ("kv_batch_put", "kv_batch_get", "async_kv_batch_put", "kv_list", "kv_clear"):
            real, own = inspect.signature(getattr(transfer_queue, name)), inspect.signature(getattr(self, name))
            assert [*own.parameters] == [*real.parameters][: len(own.parameters)], name
            monkeypatch.setattr(transfer_queue, name, getattr(self, name))
        return self

    def kv_batch_put(
        self,
        keys: list[str],
        partition_id: str,
        fields: TensorDict | None = None,
        tags: list[dict[str, Any]] | None = None,
    ) -> KVBatchMeta:
        for name in fields.keys() if fields is not None else ():
            column = fields.get(name)
            values = [*column.unbind()] if isinstance(column, torch.Tensor) else column.tolist()
            assert len(values) == len(keys), name
            for key, value in zip(keys, values, strict=True):
                self.rows.setdefault(key, {})[name] = value
        for key, tag in zip(keys, tags or [], strict=bool(tags)):
            self.tags[key] = tag
        return KVBatchMeta(keys=[*keys], tags=[self.tags[key] for key in keys], partition_id=partition_id)

    def kv_list(self, partition_id: str | None = None) -> dict[str, dict[str, Any]]:
        return {partition_id or "train": dict(self.tags)}

    def kv_clear(self, keys: list[str], partition_id: str) -> None:
        for key in keys:
            self.rows.pop(key, None)
            self.tags.pop(key, None)

    async def async_kv_batch_put(
        self,
        keys: list[str],
        partition_id: str,
        fields: TensorDict | None = None,
        tags: list[dict[str, Any]] | None = None,
    ) -> KVBatchMeta:
        return self.kv_batch_put(keys, partition_id, fields, tags)

    def kv_batch_get(self, keys: list[str], partition_id: str, select_fields: list[str] | None = None) -> TensorDict:
        rows = [self.rows[key] for key in keys]
        names = [name for name in rows[0] if all(name in row for row in rows)]
        wanted = [name for name in names if select_fields is None or name in select_fields]
        return TensorDict({name: _column([row[name] for row in rows]) for name in wanted}, batch_size=[len(keys)])


def _column(values: list[Any]) -> Any:
    if not isinstance(values[0], torch.Tensor):
        return NonTensorStack(*values)
    return torch.stack(values) if values[0].dim() == 0 else torch.nested.as_nested_tensor(values, layout=torch.jagged)


def agent_worker(processor: Any = None, tokenizer: Any = None) -> Any:
    """verl's agent worker without the parts that its constructor loads, except for these."""
    cls = AgentLoopWorkerTQ.__ray_metadata__.modified_class
    worker = object.__new__(cls)
    worker.reward_loop_worker_handles = None
    worker.processor, worker.tokenizer = processor, tokenizer
    worker.distillation_enabled = False
    return worker


def trainer(config: DictConfig, tokenizer: Any, ranks: int = 1) -> TurnTrainer:
    """The trainer before it starts any worker, for this number of ranks."""
    made = TurnTrainer(config)
    made.tokenizer = tokenizer
    made.actor_rollout_wg = SimpleNamespace(_dispatch_info={"actor": [*range(ranks)]})
    made.global_steps = 1
    return made


def hand_over(
    queue: MemoryQueue,
    outputs: Sequence[Any],
    uid: str,
    session: int,
    processor: Any = None,
    tokenizer: Any = None,
    **row: Any,
) -> list[str]:
    """Process the output of an agent loop as verl does. Returns the keys of the stored rows."""
    before = {*queue.rows}
    fields = {"raw_prompt": [], "global_steps": 1, **row, "uid": uid, "session_id": session}
    asyncio.run(agent_worker(processor, tokenizer)._agent_loop_postprocess([*outputs], False, **fields))
    return [key for key in queue.rows if key not in before]


def batch_of(made: TurnTrainer, queue: MemoryQueue, keys: Sequence[str], rng: random.Random) -> KVBatchMeta:
    """These rows in any order, padded and balanced over the ranks by verl."""
    keys = rng.sample([*keys], len(keys))
    batch = KVBatchMeta(keys=keys, tags=[queue.tags[key] for key in keys], partition_id="train")
    batch = made._balance_batch(batch, {})
    for key in batch.keys:  # numbers that workers would compute
        length = len(queue.rows[key]["responses"])
        for name in ("values", "old_log_probs", "ref_log_prob"):
            queue.rows[key][name] = torch.tensor([rng.uniform(-1, 1) for _ in range(length)])
    return batch
