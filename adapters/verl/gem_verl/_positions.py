"""Positions of ids on several axes, as models of the Qwen-VL kind have them, in verl's workers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import ray
from tensordict import TensorDict
from verl.utils.tensordict_utils import nested_tensor_from_tensor_list
from verl.workers import engine_workers
from verl.workers.engine import base

AXES = 4
"""Of verl's positions: the place in the text, and three axes of an image."""


def make_position_ids_ragged(data: TensorDict) -> None:
    """Make the positions of rows ragged along the ids; verl's `maybe_fix_3d_position_ids` does so unless all rows have
    one length.

    TransferQueue joins rows of one length along their axes instead. verl would take the axes for ids, and fail.

    Args:
        data: rows with `position_ids`, each of the shape (axes, ids); changed in place.
    """
    positions: Any = data.get("position_ids", None)
    if positions is None or not positions.is_nested or positions.dim() != 3:
        return
    values = positions.values()
    if len(values) == AXES and len(positions.offsets()) > 2:
        positions._ragged_idx = 2
    else:
        rows = values.view(-1, AXES, values.shape[-1])
        data["position_ids"] = nested_tensor_from_tensor_list([*rows], ragged_idx=2)


def patch_workers(workers: Iterable[Any]) -> None:
    """Let these workers of verl, Ray actors, use `make_position_ids_ragged`."""
    ray.get([one.__ray_call__.remote(_replace) for one in workers])


def _replace(worker: Any) -> None:
    """Runs in a worker."""
    modules: list[Any] = [base, engine_workers]
    for module in modules:
        module.maybe_fix_3d_position_ids = make_position_ids_ragged
