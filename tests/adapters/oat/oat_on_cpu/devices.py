"""What Oat and DeepSpeed ask of CUDA, answered by the CPU. Import before Oat."""

from __future__ import annotations

import os
import types
from typing import Any

ENVIRONMENT = {
    "DS_ACCELERATOR": "cpu",  # DeepSpeed looks for CUDA first
    "USE_TF": "0",  # Launchpad's TensorFlow is a fragment, which transformers would import
    "HF_HUB_OFFLINE": "1",  # models are folders
    "VLLM_USE_V1": "0",  # vLLM 0.8.5's newer engine has no CPU
    "VLLM_CPU_KVCACHE_SPACE": "1",  # gigabytes
    "OMP_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


def prepare(devices: int = 1) -> None:
    """Make the CPU `devices` devices of Oat's."""
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    import torch

    cpu = torch.device("cpu")
    torch.cuda.current_device = lambda: cpu  # Oat moves tensors there
    for name in ("synchronize", "empty_cache", "set_device"):
        setattr(torch.cuda, name, _nothing(name))
    torch.cuda.memory_allocated = lambda *_, **__: 0  # Oat logs it
    torch.cuda.device_count = lambda: devices  # Oat refuses to use more than there are


def prepare_oat() -> None:
    """After Oat can be imported."""
    from oat.utils import deepspeed

    # FusedAdam is a CUDA kernel; the one for CPUs compiles for minutes.
    deepspeed.DeepspeedStrategy.create_optimizer = _create_optimizer


def _create_optimizer(self: Any, model: Any, **options: Any) -> Any:
    import torch
    from oat.utils import deepspeed

    inner = model.model if isinstance(model, deepspeed.LLM) else model
    groups = deepspeed.get_optimizer_grouped_parameters(inner, options["weight_decay"])
    return torch.optim.AdamW(groups, **options)


def _nothing(name: str) -> Any:
    # One function each: torch._dynamo refuses the same one twice.
    return types.FunctionType((lambda *_, **__: None).__code__, globals(), name)
