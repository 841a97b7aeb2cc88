"""Plugins that hear metrics and updates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from gem_core.episode import Episode, Source
from gem_core.hookspecs import hookimpl
from gem_core.plugins import manager
from gem_core.update import Update

AnyListener = TypeVar("AnyListener")


def registered(listener: AnyListener) -> Iterator[AnyListener]:
    """The listener, which hears the hooks of this process meanwhile; for fixtures."""
    manager.register(listener)
    yield listener
    manager.unregister(listener)


class UpdateListener:
    """Keeps the updates that are reported."""

    def __init__(self) -> None:
        self.updates: list[Update] = []

    @hookimpl
    def gem_update(self, update: Update) -> None:
        self.updates.append(update)


class Listener:
    """Writes down what the hooks tell."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, Any]] = []
        self.sources: list[Source] = []

    @hookimpl
    def gem_metrics_start(self, source: Source) -> None:
        self.sources.append(source)
        self.heard.append(("start", source.resumed))

    @hookimpl
    def gem_metrics(self, source: Source, step: int, metrics: dict[str, float]) -> None:
        self.heard.append(("metrics", (step, dict(metrics))))

    @hookimpl
    def gem_samples(self, source: Source, step: int, episodes: Sequence[Episode]) -> None:
        self.heard.append(("samples", (step, [*episodes])))

    @hookimpl
    def gem_metrics_end(self, source: Source) -> None:
        self.heard.append(("end", source.id == self.sources[-1].id))

    def of(self, kind: str) -> list[Any]:
        return [what for name, what in self.heard if name == kind]
