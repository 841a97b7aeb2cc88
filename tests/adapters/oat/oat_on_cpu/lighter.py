"""The lighter form: real Oat classes and DeepSpeed, stand-in engine and transport. Import before Oat."""

from __future__ import annotations

from oat_on_cpu import devices


def prepare(count: int = 1) -> None:
    """Everything that the lighter form swaps, in this process."""
    devices.prepare(count)
    from oat_on_cpu import transport

    transport.install()
    devices.prepare_oat()
