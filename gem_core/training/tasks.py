"""Tasks of a run: which environment each of them plays."""

from __future__ import annotations

from collections.abc import Mapping

from gem_core.vector import share_places


class TaskTable:
    """Tasks in the place of a data set's rows, without an end.

    Environments share each batch by their weights, and each counts its own rows, so that one over a data set leaves
    out none.

    Args:
        weights: environment ids and their shares.
        batch: tasks of a batch.

    Raises:
        ValueError: an environment would never be played.
    """

    def __init__(self, weights: Mapping[str, float], batch: int) -> None:
        self._envs = share_places(weights, batch)

    def __getitem__(self, number: int) -> tuple[str, int]:
        """The environment that task `number` plays, and its own count of it."""
        batch, place = divmod(number, len(self._envs))
        env_id = self._envs[place]
        return env_id, batch * self._envs.count(env_id) + self._envs[:place].count(env_id)
