"""Oat's own program, unchanged, without a GPU.

Swapped in every run (`devices`, each with its reason):

- What Oat, DeepSpeed and vLLM ask of `torch.cuda`, and the number of devices.
- DeepSpeed's fused Adam, which is for GPUs, and its shared-memory operator, which is compiled for minutes.
- How vLLM's workers receive weights: in the CPU's memory.

Only where Launchpad is not installed, which ends at Python 3.10 as Plasma does, there are stand-ins: for Launchpad and
Plasma (`transport`), and for vLLM, of which no build fits (`engine`). Then a learner and its actor share one process.
"""

from __future__ import annotations

import importlib.util

FLAGS = ["--no-bf16", "--no-flash_attn", "--no-use_fused_lm_head", "--master_addr", "127.0.0.1", "--shm_size_mb", "100"]
"""What a CPU needs: float32, and no kernels for GPUs."""


def prepare(devices: int = 1) -> list[str]:
    """Have this process, and those that it starts, take the CPU for GPUs. Before Oat is imported.

    Args:
        devices: how many.

    Returns:
        Flags of Oat, to which you add what is to be trained.

    Raises:
        FrameworkVersionError: Oat is missing, or has another version than the adapter supports.
    """
    from gem_core.training import require
    from gem_cpu.oat import devices as cpu
    from gem_oat.plugin import OAT

    require(OAT)
    cpu.prepare(devices)
    if importlib.util.find_spec("launchpad") is None:
        from gem_cpu.oat import transport

        print("Lighter form: real Oat classes and DeepSpeed, stand-ins for vLLM, Launchpad and Plasma.")
        transport.install()
    return FLAGS
