"""Whether there is a GPU, without torch: a framework is made ready for a CPU before torch is imported."""

from __future__ import annotations

import os
from pathlib import Path

HIDDEN = ("", "-1")
"""Values of `CUDA_VISIBLE_DEVICES` that hide all GPUs."""


def has_gpu() -> bool:
    """Whether this process sees a GPU of NVIDIA or AMD."""
    if os.environ.get("CUDA_VISIBLE_DEVICES") in HIDDEN:
        return False
    return any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/kfd").exists()
