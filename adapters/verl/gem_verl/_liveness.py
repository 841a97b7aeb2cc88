"""Whether agent workers are alive: verl would wait forever for the episodes of one that was killed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ray
from ray.exceptions import RayActorError

from gem_core.errors import AdapterError


class Liveness:
    """Asks Ray's actors whether they are there, one question at a time for each.

    Args:
        actors: their handles.
    """

    def __init__(self, actors: Sequence[Any] = ()) -> None:
        self._actors = actors
        self._asked: list[Any] = []

    def check(self) -> None:
        """Look at the answers, without waiting for any. Raises `AdapterError` if an actor died."""
        if self._asked:  # otherwise Ray would be asked for nothing, and would start for that
            answered, waiting = ray.wait(self._asked, num_returns=len(self._asked), timeout=0)
            try:
                ray.get(answered)
            except RayActorError as error:
                raise AdapterError(f"an agent worker of verl died, and its episodes are lost: {error}") from error
            if waiting:
                return
        self._asked = [actor.__ray_ready__.remote() for actor in self._actors]
