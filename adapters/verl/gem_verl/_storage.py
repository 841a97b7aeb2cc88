"""TransferQueue, where verl keeps the rows of a batch. Only this module of the adapter uses it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import transfer_queue as tq
from numpy.typing import NDArray
from tensordict import TensorDict
from transfer_queue import KVBatchMeta


def read(batch: KVBatchMeta, *fields: str) -> TensorDict:
    """Fields of all rows, in the order of `batch.keys`."""
    return tq.kv_batch_get(keys=batch.keys, partition_id=str(batch.partition_id), select_fields=[*fields])


def write(batch: KVBatchMeta, fields: TensorDict) -> None:
    """Replace fields of all rows."""
    tq.kv_batch_put(keys=batch.keys, partition_id=str(batch.partition_id), fields=fields)


def extra_fields(batch: KVBatchMeta) -> list[dict[str, Any]]:
    """The extra fields of each row besides its tensors; empty for padding rows of verl."""
    found: list[Any] = [*read(batch, "extra_fields")["extra_fields"]]
    # Padding rows are copies of the first row.
    return [{} if tag.get("is_padding") else one for tag, one in zip(batch.tags, found, strict=True)]


def padded(rows: Any) -> NDArray[np.float64]:
    """Rows of different lengths as a table, with 0 at their ends."""
    return rows.to_padded_tensor(0.0).double().numpy()


def nested(rows: list[torch.Tensor]) -> torch.Tensor:
    """Rows of different lengths as verl stores them."""
    return torch.nested.as_nested_tensor(rows, layout=torch.jagged)
