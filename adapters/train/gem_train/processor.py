"""Capabilities of this machine's processor."""

from __future__ import annotations

import functools
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")
_BF16 = frozenset({"avx512_bf16", "amx_bf16", "bf16"})
"""Flags of x86 and Arm."""


@functools.cache
def computes_bf16() -> bool:
    """Whether the processor has bfloat16 arithmetic. Without it, a model in bfloat16 takes many times as long.

    Only Linux says so; elsewhere the answer is no.
    """
    try:
        lines = _CPUINFO.read_text().splitlines()
    except OSError:
        return False
    flags = next((line for line in lines if line.lower().startswith(("flags", "features"))), "")
    return not _BF16.isdisjoint(flags.split())
