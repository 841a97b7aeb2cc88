"""Swaps devices and the inference engine; nothing of what ROLL trains, schedules or computes."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

PLATFORM = "roll.platforms.cpu"
ENGINE = "roll.distributed.strategy.vllm_strategy"


def install() -> None:
    """Swap what this module names when it is imported."""
    if not any(isinstance(finder, _Swapper) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Swapper())


class _Swapper(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname == ENGINE:
            # ROLL's module imports vLLM, of which the build for CPUs does not take new weights as ROLL sends them.
            return importlib.util.spec_from_file_location(ENGINE, Path(__file__).with_name("engine.py"))
        if fullname != PLATFORM:
            return None
        sys.meta_path.remove(self)
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            sys.meta_path.insert(0, self)
        if spec and spec.loader:
            spec.loader.exec_module = _followed_by(spec.loader.exec_module, _platform)
        return spec


def _followed_by(load: Callable[[ModuleType], None], swap: Callable[[Any], None]) -> Callable[[ModuleType], None]:
    def both(module: ModuleType) -> None:
        load(module)
        swap(module)

    return both


def _platform(module: Any) -> None:
    """ROLL has a platform for CPUs, which lacks what its pipelines ask every platform for."""
    import torch

    cpu = module.CpuPlatform
    # Placement: ROLL hands out numbered devices, which are made-up GPUs of Ray here.
    cpu.ray_device_key = "GPU"
    cpu.device_control_env_var = "CUDA_VISIBLE_DEVICES"
    cpu.ray_experimental_noset = "RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES"
    cpu.device_count = classmethod(lambda cls: int(os.environ["ROLL_CPU_DEVICES"]))
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
