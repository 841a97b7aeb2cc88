"""Swaps devices and the inference engine; nothing that ROLL trains, schedules or computes."""

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


@functools.cache  # Python's start calls it, and so does a program that prepares itself
def install() -> None:
    """Change ROLL's platform as soon as it is imported in this process, and load `engine` for its vLLM strategy."""
    change_modules({"roll.platforms.cpu": _platform}, replaced={_ENGINE: Path(__file__).with_name("engine.py")})


def _platform(module: Any) -> None:
    """ROLL has a platform for CPUs, which lacks what its pipelines ask every platform for."""
    import torch

    cpu = module.CpuPlatform
    # Placement: ROLL hands out numbered devices, which are made-up GPUs of Ray here.
    cpu.ray_device_key = "GPU"
    cpu.device_control_env_var = "CUDA_VISIBLE_DEVICES"
    cpu.ray_experimental_noset = "RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES"
    cpu.device_count = classmethod(lambda cls: int(os.environ[DEVICES]))
    # Memory: there is none of a device to count or to free.
    for name in MEMORY:
        setattr(cpu, name, classmethod(lambda cls, *args, **kwargs: 0))
    cpu.memory = SimpleNamespace(_set_allocator_settings=lambda settings: None)
    # Random numbers, which ROLL saves with a checkpoint.
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
