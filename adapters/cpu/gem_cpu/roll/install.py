"""Replaces devices and the inference engine, but no code that trains, schedules or computes advantages."""

from __future__ import annotations

import functools
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from gem_cpu.imports import change_modules

DEVICES = "GEM_CPU_ROLL_DEVICES"

_ENGINE = "roll.distributed.strategy.vllm_strategy"
"""ROLL's module of this name imports vLLM, and vLLM's CPU build cannot load new weights the way ROLL sends them."""


@functools.cache  # called when Python starts, and by programs that prepare themselves
def install() -> None:
    """Change ROLL's platform as soon as this process imports it, and load `engine` in place of its vLLM strategy."""
    change_modules({"roll.platforms.cpu": _platform}, replaced={_ENGINE: Path(__file__).with_name("engine.py")})


def _platform(module: Any) -> None:
    """ROLL's platform for CPUs lacks methods that its pipelines call on every platform."""
    import torch

    cpu = module.CpuPlatform
    # Placement: ROLL assigns numbered devices, here GPUs that Ray only believes to exist.
    cpu.ray_device_key = "GPU"
    cpu.device_control_env_var = "CUDA_VISIBLE_DEVICES"
    cpu.ray_experimental_noset = "RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES"
    cpu.device_count = classmethod(lambda cls: int(os.environ[DEVICES]))
    # Memory: there is no device memory to count or to free.
    for name in MEMORY:
        setattr(cpu, name, classmethod(lambda cls, *args, **kwargs: 0))
    cpu.memory = SimpleNamespace(_set_allocator_settings=lambda settings: None)
    # Random state, which ROLL saves in checkpoints.
    cpu.get_rng_state = classmethod(lambda cls: torch.get_rng_state())
    cpu.random = SimpleNamespace(
        get_rng_state_all=lambda: [torch.get_rng_state()], set_rng_state_all=lambda states: None
    )


MEMORY = (
    "memory_allocated",
    "memory_reserved",
    "max_memory_reserved",
    "max_memory_allocated",
    "device_memory_used",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "reset_peak_memory_stats",
    "empty_cache",
    "init",
)
