"""ROLL's own environment managers, for who wants to keep them: with our environments, and an end to what was truncated.

Named in ROLL's yaml, `env_manager_cls: gem_roll.stock.StepConcatEnvManager`; the environment worker imports this
module, and with it `env_type: gem-core` is known.
"""

from __future__ import annotations

from typing import Any

from roll.pipeline.agentic.env_manager import step_concat_env_manager, step_env_manager, traj_env_manager

from gem_roll.bridge import register_bridge
from gem_roll.stock_checks import check_signal

register_bridge()


class _Truncated:
    """ROLL's managers go on with an environment that has truncated its episode."""

    def __init__(self, worker_config: Any, pipeline_config: Any, *args: Any, **kwargs: Any) -> None:
        check_signal(pipeline_config)
        super().__init__(worker_config, pipeline_config, *args, **kwargs)  # pyright: ignore[reportCallIssue]

    def step(self, llm_output: Any) -> Any:
        """As ROLL's; the episode is over where the environment says so in either way."""
        cache: Any = super().step(llm_output)  # pyright: ignore[reportAttributeAccessIssue]
        cache.terminated = cache.terminated or cache.truncated
        return cache


class TrajEnvManager(_Truncated, traj_env_manager.TrajEnvManager):
    """A row per episode."""


class StepEnvManager(_Truncated, step_env_manager.StepEnvManager):
    """A row per turn."""


class StepConcatEnvManager(_Truncated, step_concat_env_manager.StepConcatEnvManager):
    """A row per turn, with the observations before it."""
