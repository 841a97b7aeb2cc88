"""Imported by a run (`gem.modules`): with `gem.max_staleness=1`, no episode begins before the weights that train on it.

So a run has the machinery of sampling ahead, and a bound of 0.
"""

from __future__ import annotations

import time
from typing import Any

from gem_roll._env_manager import TurnEnvManager
from gem_roll._policy import Stopped

_play = TurnEnvManager._play


def _play_in_time(self: TurnEnvManager, runner: Any, policy: Any, task_id: int) -> Any:
    while self.current_step < task_id // self._tasks:
        if not self.running:
            raise Stopped
        time.sleep(0.05)
    return _play(self, runner, policy, task_id)


TurnEnvManager._play = _play_in_time
