"""Ends what `gem_core.training.recording.record` began in this process."""

from __future__ import annotations

from gem_core.training.recording import record
from gem_core.training.settings import RunSettings


def end_recording() -> None:
    """End it as settings without `record` do."""
    record(RunSettings())
