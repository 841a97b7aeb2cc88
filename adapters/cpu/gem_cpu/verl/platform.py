"""The CPU as a device of verl."""

from __future__ import annotations

import types
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil
import torch
from verl.plugin.platform import PlatformBase


class CPUDevice(types.ModuleType):
    """`torch.cpu`, with the functions of `torch.cuda` that verl calls and `torch.cpu` lacks."""

    def __getattr__(self, name: str) -> Any:
        return getattr(torch.cpu, name)

    def empty_cache(self) -> None:
        """There is no cache."""

    def ipc_collect(self) -> None:
        """There is nothing to collect."""

    def get_device_name(self, *_: Any) -> str:
        return "CPU"  # in verl's table of floating-point speeds

    def memory_allocated(self, *_: Any) -> int:
        return 0

    memory_reserved = max_memory_allocated = max_memory_reserved = memory_allocated

    def mem_get_info(self, *_: Any) -> tuple[int, int]:
        memory = psutil.virtual_memory()
        return memory.available, memory.total

    def get_rng_state(self, *_: Any) -> torch.Tensor:
        return torch.get_rng_state()

    def set_rng_state(self, state: torch.Tensor, *_: Any) -> None:
        torch.set_rng_state(state)


class PlatformCPU(PlatformBase):
    """Selected by `VERL_PLATFORM=cpu`. Ray treats its devices as GPUs; `ray.init(num_gpus=...)` sets their number."""

    device_name = "cpu"  # pyright: ignore[reportIncompatibleMethodOverride, reportAssignmentType]
    vendor_name = "cpu"  # pyright: ignore[reportIncompatibleMethodOverride, reportAssignmentType]
    device_module = CPUDevice("gem_cpu.verl.device")  # pyright: ignore[reportIncompatibleMethodOverride, reportAssignmentType]

    def is_available(self) -> bool:
        return True

    def current_device(self) -> Any:
        return "cpu"  # verl moves tensors with `.to(current_device())`, and a number would mean a GPU

    def device_count(self) -> int:
        return 1

    def set_device(self, device_index: int) -> None:
        """There is only one device."""

    def synchronize(self, device_index: int | None = None) -> None:
        """The CPU computes synchronously."""

    def manual_seed(self, seed: int) -> None:
        torch.manual_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        torch.manual_seed(seed)

    def set_allocator_settings(self, settings: str) -> None:
        """The settings are those of CUDA's allocator."""

    def empty_cache(self) -> None:
        """There is no cache."""

    def get_device_capability(self, device_index: int = 0) -> tuple[int | None, int | None]:
        return None, None

    def communication_backend_name(self) -> str:
        return "gloo"

    def visible_devices_envvar(self) -> str:
        return "CUDA_VISIBLE_DEVICES"  # Ray sets it, because it treats the devices as GPUs

    @contextmanager
    def nvtx_range(self, msg: str) -> Iterator[None]:  # pyright: ignore[reportIncompatibleMethodOverride]
        yield

    def profiler_start(self) -> None:
        """There is no profiler."""

    def profiler_stop(self) -> None:
        """There is no profiler."""

    def ray_resource_name(self) -> str:
        return "GPU"

    def ray_noset_envvars(self) -> list[str]:
        return []

    def is_ipc_supported(self) -> bool:
        return False  # so weights are sent through shared memory instead of CUDA handles

    def cudart(self) -> None:
        return None
