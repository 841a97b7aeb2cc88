"""ROLL: multi-turn environments and per-turn advantages in ROLL's own agentic pipeline.

    python -m gem_roll examples/roll_guess_the_number_gpu.yaml gem.env=game:GuessTheNumber-v0-easy

`train` does the same from Python. ROLL is not on a package index: clone it and put the clone on PYTHONPATH.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_roll.plugin import ROLL
from gem_train import lazy_names

if TYPE_CHECKING:
    from gem_roll.launch import compose as compose
    from gem_roll.launch import train as train

__all__ = ["compose", "train"]

__getattr__ = lazy_names(__name__, ROLL, {"compose": "launch", "train": "launch"})
