"""A thread per environment."""

from __future__ import annotations

from typing import Any

from gem_compat.vector.vector_env import VectorEnv
from gem_core.vector import HostedEnv, TaskPlan, ThreadVectorEnv
from gem_core.vector import VectorEnv as Engine


class AsyncVectorEnv(VectorEnv):
    """Environments that wait, each in a thread of its own; resets run side by side, too."""

    def _built(self, hosted: list[HostedEnv], plan: TaskPlan, settings: dict[str, Any]) -> Engine:
        return ThreadVectorEnv(hosted.__getitem__, plan, len(hosted), **settings)
