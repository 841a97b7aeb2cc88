"""Tells listeners the metrics of a training, an evaluation or a rollout."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from gem_core.episode import Episode, Run, Source
from gem_core.plugins import manager
from gem_train.rollout._secrets import without_secrets

MAX_SAMPLES = 8
"""Episodes that listeners get with the metrics of a step."""

_ID = "run_id"
"""The file in the folder of a tracked run with its id."""

_log = logging.getLogger("gem_train.rollout")


class Reporter:
    """Calls the hooks `gem_metrics_start`, `gem_metrics`, `gem_samples` and `gem_metrics_end`. Raises nothing.

    Args:
        kind: what reports.
        name: what is trained on or played.
        settings: of the run.
        folder: keeps the id of a tracked run.
        resumed: the run continues in that folder.
        track: plugins that track it. They were checked with `PluginManager.require`.
        identifier: by default a new one, or that of the folder if the run is resumed.
    """

    def __init__(
        self,
        kind: Literal["training", "evaluation", "rollout"],
        name: str,
        *,
        settings: Mapping[str, Any] | None = None,
        folder: str | Path | None = None,
        resumed: bool = False,
        track: Sequence[str] = (),
        identifier: str | None = None,
    ) -> None:
        for plugin in track:
            manager.load(plugin)
        place = None if folder is None else Path(folder).absolute()
        self.source = Source(
            id=identifier or _identifier(place if track else None, resumed),
            kind=kind,
            name=name,
            settings=without_secrets(dict(settings or {})),
            folder=None if place is None else str(place),
            resumed=resumed,
            track=[*track],
        )
        self._open = False

    @classmethod
    def of_rollout(cls, run: Run, track: Sequence[str]) -> Reporter:
        """The reporter of a rollout that is no part of a training or an evaluation."""
        return cls("rollout", ", ".join(run.env_ids), settings=run.settings, track=track, identifier=run.id)

    @property
    def has_listeners(self) -> bool:
        """Whether somebody listens, so that metrics are worth their computation."""
        return manager.listens("gem_metrics") or bool(self.source.track)

    def begin(self) -> None:
        """Announce the source, if that is not done yet; `report` does, too."""
        if not self._open:
            self._open = True
            manager.notify("gem_metrics_start", source=self.source)

    def report(self, step: int, metrics: Mapping[str, float], episodes: Sequence[Episode] = ()) -> None:
        """Tell the metrics of a step, and show some episodes that ended before it."""
        self.begin()
        manager.notify("gem_metrics", source=self.source, step=step, metrics=metrics)
        if self.source.track and episodes:
            samples = [without_tokens(episode) for episode in episodes[:MAX_SAMPLES]]
            manager.notify("gem_samples", source=self.source, step=step, episodes=samples)

    def close(self) -> None:
        """Announce the end. Safe to call twice. A later `report` continues with the same source."""
        if self._open:
            self._open = False
            manager.notify("gem_metrics_end", source=self.source)
            self.source = msgspec.structs.replace(self.source, resumed=True)


def without_tokens(episode: Episode) -> Episode:
    """The episode as if its model had shown no tokens."""
    turns = [msgspec.structs.replace(turn, sequence=0, start=0, end=0) for turn in episode.turns]
    return msgspec.structs.replace(episode, turns=turns, sequences=[])


def _identifier(folder: Path | None, resumed: bool) -> str:
    """The id of a run: the one in its folder if it resumes, otherwise a new one, which is written there."""
    new = secrets.token_hex(8)
    if folder is None:
        return new
    try:
        if resumed and (found := _read_id(folder / _ID)):
            return found
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _ID).write_text(f"{new}\n")
    except OSError as error:
        _log.error("The id of the run could not be kept, so trackers cannot resume it: %s", error)
    return new


def _read_id(path: Path) -> str:
    """The id; empty if there is none, or if it was cut off when it was written."""
    try:
        text = path.read_text()
    except FileNotFoundError:
        return ""
    return text.strip() if text.endswith("\n") and text.strip().isalnum() else ""
