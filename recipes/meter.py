"""Numbers of each update that the metrics of a training lack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gem_core.episode import Episode
from gem_core.hookspecs import hookimpl
from gem_core.plugins import manager

Measure = Callable[[Episode], dict[str, float]]
"""Numbers of an episode. Which ones may differ between episodes."""


class Meter:
    """Takes numbers from each episode, and gives their means since the last call of `take`."""

    def __init__(self, measure: Measure) -> None:
        self._measure = measure
        self._numbers: dict[str, list[float]] = {}

    def __enter__(self) -> Meter:
        manager.register(self)
        return self

    def __exit__(self, *error: Any) -> None:
        manager.unregister(self)

    @hookimpl
    def gem_episode_end(self, episode: Episode) -> None:
        """Measure an episode."""
        for name, number in self._measure(episode).items():
            self._numbers.setdefault(name, []).append(number)

    def take(self) -> dict[str, float]:
        """The means by name, and begin anew."""
        means = {name: sum(numbers) / len(numbers) for name, numbers in self._numbers.items()}
        self._numbers = {}
        return means
