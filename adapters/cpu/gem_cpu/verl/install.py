"""Imported by verl itself, in the driver and in every Ray worker: registers the CPU with verl."""

from __future__ import annotations

import functools
from typing import Any

import torch
from transformers import AutoModelForTokenClassification, PretrainedConfig, PreTrainedModel
from transformers.models.qwen2_vl import processing_qwen2_vl
from verl.plugin.platform import PlatformRegistry
from verl.utils import distributed, model
from verl.workers.rollout import base
from verl.workers.rollout.replica import RolloutReplica, RolloutReplicaRegistry

from gem_cpu.images import leave_out_videos
from gem_cpu.verl.platform import PlatformCPU


def _replica() -> type[RolloutReplica]:
    from gem_cpu.verl.replica import TransformersReplica  # loads transformers, so imported only on use

    return TransformersReplica


def _plain_gloo() -> None:
    """verl asks for the back ends `cpu:gloo,<device>:<its back end>`; torch refuses the CPU's back end twice."""
    original = distributed.initialize_global_process_group_ray

    @functools.wraps(original)
    def initialize(timeout_second: int | None = None, backend: str | None = None) -> Any:
        return original(timeout_second, backend or "cpu:gloo")

    distributed.initialize_global_process_group_ray = initialize


def _value_model_without_flash_attention() -> None:
    """verl loads the critic with flash attention, whatever its configuration."""

    def load(
        local_path: str, torch_dtype: torch.dtype, model_config: PretrainedConfig, trust_remote_code: bool
    ) -> PreTrainedModel:
        return AutoModelForTokenClassification.from_pretrained(
            local_path, dtype=torch_dtype, config=model_config, trust_remote_code=trust_remote_code
        )

    model.load_valuehead_model = load


def _unpinned(tensor: torch.Tensor, *_: Any) -> torch.Tensor:
    """verl offloads the reference model to pinned memory, which needs a GPU."""
    return tensor


PlatformRegistry.register("cpu")(PlatformCPU)
_plain_gloo()
_value_model_without_flash_attention()
leave_out_videos(processing_qwen2_vl)
torch.Tensor.pin_memory = _unpinned  # pyright: ignore[reportAttributeAccessIssue]
RolloutReplicaRegistry.register("transformers", _replica)
base._ROLLOUT_REGISTRY[("transformers", "async")] = "gem_cpu.verl.replica.WeightSender"
