"""Sampling the next batch while the learner trains."""

from __future__ import annotations

from typing import Any


class ActorAhead:
    """An actor in Oat's collector that plays its next step while the learner trains: one in flight, never more.

    Oat's own asynchronous collector plays a step that nobody trains on, and counts a batch less.

    Args:
        actor: Oat's actor.
        steps: how many steps the training needs of it; no more are begun.
    """

    def __init__(self, actor: Any, steps: int) -> None:
        self._actor = actor
        self._left = steps
        self._under_way: Any = None

    def step(self, *prompts: Any) -> Any:
        """The handle of the step that is under way; the next one begins. Prompts are placeholders, always as many."""
        handle = (self._under_way or self._begin(prompts)).result()
        self._under_way = self._begin(prompts) if self._left else None
        return handle

    def _begin(self, prompts: tuple[Any, ...]) -> Any:
        self._left -= 1
        return self._actor.futures.step(*prompts)
