"""TRL: multi-turn environments and per-turn advantages in `GRPOTrainer`'s own loop.

    from gem_trl import TurnGRPOConfig, TurnGRPOTrainer
    args = TurnGRPOConfig("runs/demo", env="game:GuessTheNumber-v0-easy", advantage="rebn", max_steps=100)
    TurnGRPOTrainer("Qwen/Qwen3-1.7B-Base", args).train()

`TurnGRPOConfig` is TRL's `GRPOConfig` with the settings of a run of gem-core.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_train import lazy_names
from gem_trl.plugin import TRL

if TYPE_CHECKING:
    from gem_trl._config import TurnGRPOConfig as TurnGRPOConfig
    from gem_trl._progress import ProgressCallback as ProgressCallback
    from gem_trl._trainer import TurnGRPOTrainer as TurnGRPOTrainer

__all__ = ["ProgressCallback", "TurnGRPOConfig", "TurnGRPOTrainer"]

__getattr__ = lazy_names(
    __name__, TRL, {"TurnGRPOConfig": "_config", "TurnGRPOTrainer": "_trainer", "ProgressCallback": "_progress"}
)
