"""One environment after the other."""

from __future__ import annotations

from typing import Any

import gem_core.vector.sync
from gem_compat.vector.vector_env import VectorEnv
from gem_core.vector import HostedEnv, TaskPlan
from gem_core.vector import VectorEnv as Engine


class SyncVectorEnv(VectorEnv):
    """Environments that are played in the caller's thread."""

    def _built(self, hosted: list[HostedEnv], plan: TaskPlan, settings: dict[str, Any]) -> Engine:
        return gem_core.vector.sync.SyncVectorEnv(hosted, plan, **settings)
