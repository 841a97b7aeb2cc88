"""What all trackers share: which sources they track, and that no trouble of theirs costs a run."""

from __future__ import annotations

import atexit
import contextlib
import importlib
import logging
import threading
from collections.abc import Generator, Mapping, Sequence
from typing import Protocol

from gem_core.episode import Episode, Source
from gem_core.errors import printable
from gem_core.hookspecs import hookimpl
from gem_core.installation import install_line

_log = logging.getLogger("gem_trackers")


class Tracker(Protocol):
    """One source in a tracker. Each method may raise; the tracker then gets nothing more of this source."""

    def __init__(self, source: Source) -> None: ...

    def add_metrics(self, step: int, metrics: Mapping[str, float]) -> None:
        """Add metrics to those of a step, which may be an earlier one."""
        ...

    def add_samples(self, step: int, episodes: Sequence[Episode]) -> None:
        """Add some episodes."""
        ...

    def close(self) -> None:
        """Write what is left."""
        ...


class Tracking:
    """The plugin of a tracker.

    Args:
        name: of the entry point, the extra, and the package of the tracker.
        target: `module:class` of a `Tracker`, imported for the first source that names the plugin in `track`.
    """

    GEM_PLUGIN_API = ">=1,<2"

    def __init__(self, name: str, target: str) -> None:
        self._name = name
        self._target = target
        self._open: dict[str, Tracker] = {}
        self._lock = threading.RLock()  # sources may report from several threads

    @hookimpl
    def gem_metrics_start(self, source: Source) -> None:
        """Open the tracker, if the source names it."""
        if self._name not in source.track:
            return
        with self._lock, self._guarded(source, "could not begin"):
            module, _, kind = self._target.partition(":")
            tracker: type[Tracker] = getattr(importlib.import_module(module), kind)
            if not self._open:
                atexit.unregister(self._close_all)
                atexit.register(self._close_all)
            self._open[source.id] = tracker(source)

    @hookimpl
    def gem_metrics(self, source: Source, step: int, metrics: Mapping[str, float]) -> None:
        """Pass the metrics on."""
        with self._lock, self._guarded(source, f"failed at step {step}"):
            if tracker := self._open.get(source.id):
                tracker.add_metrics(step, metrics)

    @hookimpl
    def gem_samples(self, source: Source, step: int, episodes: Sequence[Episode]) -> None:
        """Pass the episodes on."""
        with self._lock, self._guarded(source, f"failed at step {step}"):
            if tracker := self._open.get(source.id):
                tracker.add_samples(step, episodes)

    @hookimpl
    def gem_metrics_end(self, source: Source) -> None:
        """Close the tracker."""
        with self._lock, self._guarded(source, "could not end"):
            if tracker := self._open.pop(source.id, None):
                tracker.close()

    def _close_all(self) -> None:
        """Close what never ended, because it reported after its end, or the program stopped before."""
        for identifier in [*self._open]:
            with contextlib.suppress(Exception):
                self._open.pop(identifier).close()

    @contextlib.contextmanager
    def _guarded(self, source: Source, what: str) -> Generator[None]:
        """Log an error in one line, and track this source no more."""
        try:
            yield
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            if isinstance(error, ModuleNotFoundError):
                reason = f"the module {error.name!r} is not installed. Next: {install_line(self._name)}"
            _log.error(
                "%s %s; %s %s goes on without it: %s",
                self._name,
                what,
                source.kind,
                source.name,
                printable(" ".join(reason.split())),
            )
            if tracker := self._open.pop(source.id, None):
                with contextlib.suppress(Exception):
                    tracker.close()
