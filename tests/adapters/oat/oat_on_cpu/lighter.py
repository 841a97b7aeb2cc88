"""The lighter form: real Oat classes and DeepSpeed, stand-in engine and transport. Import before Oat."""

from __future__ import annotations

from oat_on_cpu import devices as cpu


def prepare(devices: int = 1) -> None:
    """Everything that the lighter form swaps, in this process."""
    cpu.prepare(devices)
    from oat_on_cpu import transport

    transport.install()
