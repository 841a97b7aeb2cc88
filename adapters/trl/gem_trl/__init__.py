"""TRL: multi-turn environments and per-turn advantages in `GRPOTrainer`'s own loop.

from gem_trl import TurnGRPOConfig, TurnGRPOTrainer
args = TurnGRPOConfig("runs/demo", env="game:GuessTheNumber-v0-easy", advantage="rebn", max_steps=100)
TurnGRPOTrainer("Qwen/Qwen3-1.7B-Base", args).train()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gem_trl.config import TurnGRPOConfig as TurnGRPOConfig
    from gem_trl.progress import ProgressCallback as ProgressCallback
    from gem_trl.trainer import TurnGRPOTrainer as TurnGRPOTrainer

_HOME = {"TurnGRPOConfig": "config", "TurnGRPOTrainer": "trainer", "ProgressCallback": "progress"}
__all__ = ["ProgressCallback", "TurnGRPOConfig", "TurnGRPOTrainer"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'gem_trl' has no attribute {name!r}")
    import importlib

    from gem_core.adapters import require
    from gem_trl.plugin import TRL

    require(TRL)
    return getattr(importlib.import_module(f"gem_trl.{_HOME[name]}"), name)
