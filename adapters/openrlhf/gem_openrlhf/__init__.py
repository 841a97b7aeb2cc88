"""OpenRLHF: multi-turn environments and per-turn advantages in OpenRLHF's own training.

    python -m gem_openrlhf --gem.env game:GuessTheNumber-v0-easy --gem.steps 100 \\
        --actor.model_name_or_path Qwen/Qwen3-1.7B-Base --vllm.num_engines 4 ...

`python -m gem_openrlhf` is `python -m openrlhf.cli.train_ppo_ray` with the flags `--gem.*` added to OpenRLHF's own;
`launch` does the same from Python. OpenRLHF's engines load `GemAgentExecutor`, which imports no training code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gem_openrlhf.plugin import OPENRLHF
from gem_train import lazy_names

if TYPE_CHECKING:
    from gem_openrlhf._agent import GemAgentExecutor as GemAgentExecutor
    from gem_openrlhf._launcher import check_command as check_command
    from gem_openrlhf._launcher import launch as launch

__all__ = ["GemAgentExecutor", "check_command", "launch"]

__getattr__ = lazy_names(
    __name__, OPENRLHF, {"GemAgentExecutor": "_agent", "check_command": "_launcher", "launch": "_launcher"}
)
