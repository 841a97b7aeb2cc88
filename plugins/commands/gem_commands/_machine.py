"""What is installed to run a model on a GPU. Only inspects; torch is not imported."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
from pathlib import Path


def accelerator() -> dict[str, str | None]:
    """The versions that decide whether a model runs on a GPU; `None` for what is missing."""
    driver = re.search(r"Kernel Module.*?(\d[\d.]+)", _read(Path("/proc/driver/nvidia/version")))
    devices = sorted(path.name for path in Path("/dev").glob("nvidia[0-9]*"))
    return {
        "torch": distribution_version("torch"),
        "CUDA of torch": _cuda_of_torch(),
        "vllm": distribution_version("vllm"),
        "nvidia-smi": shutil.which("nvidia-smi"),
        "NVIDIA driver": driver[1] if driver else None,
        "GPUs": ", ".join(devices) or None,
    }


def distribution_version(name: str) -> str | None:
    """Version of an installed distribution."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _cuda_of_torch() -> str | None:
    try:
        source = _read(Path(str(importlib.metadata.distribution("torch").locate_file("torch/version.py"))))
    except importlib.metadata.PackageNotFoundError:
        return None
    found = re.search(r"^cuda\b[^=]*=\s*['\"]([^'\"]+)", source, re.MULTILINE)
    return found[1] if found else None


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
