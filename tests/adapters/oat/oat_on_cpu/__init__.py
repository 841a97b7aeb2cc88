"""The CPU as Oat's device. What is swapped, and why, is here and nowhere in the adapter.

`devices` is for every run on a CPU. `engine` and `transport` are for the lighter form alone: real Oat classes and
DeepSpeed, stand-ins for vLLM, Launchpad and Plasma, which do not exist for the Python and torch of CI.
"""

from __future__ import annotations

import importlib.util

from gem_core.training import require
from gem_oat.plugin import OAT

FLAGS = ["--no-bf16", "--no-flash_attn", "--no-use_fused_lm_head", "--master_addr", "127.0.0.1", "--shm_size_mb", "100"]
"""What a CPU asks for: float32, and no kernels for GPUs."""


def prepare(devices: int = 1) -> list[str]:
    """Have this process, and those that it starts, take the CPU for so many GPUs. Before Oat is imported.

    Returns:
        Flags for Oat.
    """
    from oat_on_cpu import devices as cpu

    require(OAT)
    cpu.prepare(devices)
    if importlib.util.find_spec("launchpad") is None:
        from oat_on_cpu import transport

        print("Lighter form: real Oat classes and DeepSpeed, stand-ins for vLLM, Launchpad and Plasma.")
        transport.install()
    return FLAGS
