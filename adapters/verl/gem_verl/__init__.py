"""verl: multi-turn environments and per-turn advantages in verl's own trainer.

    python -m gem_verl gem.env=game:GuessTheNumber-v0-easy algorithm.adv_estimator=rebn \\
        actor_rollout_ref.model.path=Qwen/Qwen3-1.7B-Base trainer.total_training_steps=100

`python -m gem_verl` is `python -m verl.trainer.main_ppo` with the section `gem` added to verl's configuration; `train`
does the same from Python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_train import lazy_names
from gem_verl.plugin import VERL

if TYPE_CHECKING:
    from gem_verl._launch import compose as compose
    from gem_verl._launch import train as train

__all__ = ["compose", "train"]

__getattr__ = lazy_names(__name__, VERL, {"compose": "_launch", "train": "_launch"})
