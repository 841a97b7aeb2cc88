"""Oat's own program, unchanged, without a GPU.

Replaced in every run (in `devices`, each with its reason):

- The functions of `torch.cuda` that Oat, DeepSpeed and vLLM call, and the number of devices.
- DeepSpeed's fused Adam, which is for GPUs, and its shared-memory operator, which takes minutes to compile.
- The way in which vLLM's workers receive weights: in the CPU's memory.

Launchpad and Plasma have no release for Pythons after 3.10. If Launchpad is not installed, there are stand-ins for
Launchpad and Plasma (`transport`), and for vLLM, which has no matching build (`engine`). Then a learner and its actor
share one process.
"""

from __future__ import annotations

import importlib.util

FLAGS = ["--no-bf16", "--no-flash_attn", "--no-use_fused_lm_head", "--master_addr", "127.0.0.1", "--shm_size_mb", "100"]
"""Flags that a CPU needs: float32, and no GPU kernels."""


def prepare(devices: int = 1) -> list[str]:
    """Make this process and its children use the CPU in place of GPUs. Call before Oat is imported.

    Args:
        devices: number of GPUs that the CPU stands for.

    Returns:
        Flags of Oat; add the flags of your training.

    Raises:
        FrameworkVersionError: Oat is missing, or has another version than the adapter supports.
    """
    from gem_cpu.oat import devices as cpu
    from gem_oat.plugin import OAT
    from gem_train import require

    require(OAT)
    cpu.prepare(devices)
    if importlib.util.find_spec("launchpad") is None:
        from gem_cpu.oat import transport

        print("Lighter form: real Oat classes and DeepSpeed, stand-ins for vLLM, Launchpad and Plasma.")
        transport.install()
    return FLAGS
