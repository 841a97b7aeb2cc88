"""Reads the records of a run, whatever wrote them."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from gem_core.errors import RecordsError
from gem_core.plugins import manager
from gem_core.records.content import RecordedEpisode, RecordedSummary
from gem_core.records.files import FrameFile, LineFile, Training
from gem_core.records.recorder import SUFFIX
from gem_core.specs import RecordSource

_METRICS = "metrics.jsonl"
_SUBFOLDER = "records"


class Records:
    """The records of a run. Episodes are decoded when they are asked for.

    Args:
        path: a file or a folder; see `open_records`.

    Raises:
        RecordsError: as `open_records`.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.name = self.path.resolve().name
        """The name of the folder or file."""
        self._frames: list[FrameFile] = []
        self._lines: list[LineFile] = []
        self._gaps: list[str] = []
        self._trainings: dict[str, Training] = {}
        self.summaries: list[RecordedSummary] = []
        """One for each episode: file by file, in the order in which they ended."""
        self._places: list[tuple[FrameFile | LineFile, int]] = []
        self.refresh()
        if not (self._frames or self._lines):
            raise RecordsError(
                f"{self.path} has no records: neither a file *{SUFFIX}, nor JSON lines of episodes, nor the folder of "
                "an evaluation. Train with record=full, or record with `gem_core.rollout.recording`."
            )

    def refresh(self) -> bool:
        """Read what was written meanwhile, new files included. Returns whether there was anything.

        Raises:
            RecordsError: a file cannot be read.
        """
        self._find_files()
        changed = [one.refresh() for one in [*self._frames, *self._lines]]
        if any(changed) or not self._places:
            self._index()
        return any(changed)

    @property
    def kind(self) -> str:
        """`training`, `evaluation`, or `episodes` of something else."""
        if self._frames:
            return "training"
        return next((one.source.kind for one in self._lines), "episodes")

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the run; empty if unknown."""
        return self._started("settings")

    @property
    def versions(self) -> dict[str, str]:
        """Versions of the distributions that took part; empty if unknown."""
        return self._started("versions")

    @property
    def texts(self) -> dict[int, str]:
        """The text of each token id; empty if unknown."""
        return {number: text for one in self._frames for number, text in one.texts.items()}

    @property
    def metrics(self) -> list[dict[str, float]]:
        """The metrics of each update, with its number as `step`; none if unknown."""
        folder = self.path if self.path.is_dir() else self.path.parent
        places = [folder / _METRICS, *([folder.parent / _METRICS] if folder.name == _SUBFOLDER else [])]
        lines = {line["step"]: line for place in places for line in _metrics(place)}
        return [lines[step] for step in sorted(lines)]

    @property
    def gaps(self) -> list[str]:
        """What is missing, a sentence each."""
        return [*self._gaps, *_file_gaps(self._frames, self._lines), *self._update_gaps()]

    def episode(self, index: int) -> RecordedEpisode:
        """The episode of `summaries[index]`.

        Raises:
            RecordsError: the file is damaged there.
        """
        file, number = self._places[index]
        episode = file.episode(number)
        training = self._trainings.get(self.summaries[index].id)
        return RecordedEpisode(
            self.summaries[index], episode, training.read(len(episode.turns)) if training is not None else None
        )

    def _find_files(self) -> None:
        known = {one.path for one in [*self._frames, *self._lines]}
        frames, sources = _files(self.path)
        self._frames += [FrameFile(path) for path in frames if path not in known]
        self._lines += [LineFile(source) for source in sources if source.lines not in known]
        self._gaps = [gap for source in sources for gap in source.gaps]

    def _index(self) -> None:
        self._trainings = {name: one for file in self._frames for name, one in file.trainings.items()}
        found: list[tuple[RecordedSummary, FrameFile | LineFile, int]] = []
        for frames in self._frames:
            found += [(one, frames, number) for number, one in enumerate(frames.summaries(self._trainings))]
        for lines in self._lines:
            found += [(one, lines, number) for number, one in enumerate(lines.summaries())]
        self.summaries = [one for one, *_ in found]
        self._places = [(file, number) for _, file, number in found]

    def _started(self, name: str) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for one in self._lines:
            merged |= getattr(one.source, name)
        for one in self._frames:
            merged |= one.start.get(name, {})
        return merged

    def _update_gaps(self) -> Iterator[str]:
        played = {one.id for one in self.summaries}
        ranks: dict[int, set[int]] = {}
        sizes: dict[int, int] = {}
        missing: Counter[int] = Counter()
        for head in (head for file in self._frames for head in file.updates):
            number = head["number"]
            ranks.setdefault(number, set()).add(head["rank"])
            sizes[number] = head["ranks"]
            missing[number] += sum(one not in played for one in head["episodes"])
        if lost := {
            number: sizes[number] - len(found) for number, found in ranks.items() if len(found) < sizes[number]
        }:
            yield f"{max(lost.values())} of {max(sizes.values())} training processes left no record of {_span(lost)}."
        absent = {number: count for number, count in missing.items() if count}
        if absent and self._all_recorded():
            yield f"{_span(absent).capitalize()} trained on episodes that are in no file: {sum(absent.values())}."

    def _all_recorded(self) -> bool:
        return all(one.start.get("share", 1) >= 1 for one in self._frames)


def open_records(path: str | Path) -> Records:
    """Open the records of a run.

    Args:
        path: a folder or file of a training with `record`, its `report` folder, a file of `Recorder` (those of 0.1.0
            included), the folder of an evaluation, or what a plugin names through `gem_record_sources`.

    Raises:
        RecordsError: there are no records, or they cannot be read.
    """
    return Records(path)


def read_episodes(path: str | Path) -> Iterator[RecordedEpisode]:
    """The episodes of a recording, whatever its version, one at a time.

    Raises:
        RecordsError: as `open_records`, or a file is damaged.
    """
    records = open_records(path)
    for index in range(len(records.summaries)):
        yield records.episode(index)


def _files(path: Path) -> tuple[list[Path], list[RecordSource]]:
    """Files of frames, and of JSON lines."""
    if path.is_file():
        return ([path], []) if path.suffix == SUFFIX else ([], [RecordSource("episodes", path)])
    if not path.is_dir():
        raise RecordsError(f"there is no file or folder {path}")
    sources: list[RecordSource] = []
    manager.load_all()
    manager.notify("gem_record_sources", path=path, sources=sources)
    if not sources:
        plain = [one for one in sorted(path.glob("*.jsonl")) if one.name != _METRICS]
        sources = [RecordSource("episodes", one) for one in plain]
    frames = [*path.glob(f"*{SUFFIX}"), *path.glob(f"{_SUBFOLDER}/*{SUFFIX}")]
    return sorted(frames), sources


def _file_gaps(frames: Sequence[FrameFile], lines: Sequence[LineFile]) -> Iterator[str]:
    for file in [*frames, *lines]:
        if file.unread:
            yield f"{file.path.name} ends within a record: its writer was killed, or is still writing."
    for file in frames:
        if file.lost:
            yield f"{file.path.name} lacks {file.lost} records that could not be written."
        if not file.start:
            yield f"{file.path.name} is empty: its writer was killed when it began."


def _span(numbers: dict[int, int]) -> str:
    first, last = min(numbers), max(numbers)
    return f"update {first}" if first == last else f"updates {first} to {last}"


def _metrics(path: Path) -> Iterator[dict[str, float]]:
    with contextlib.suppress(FileNotFoundError):
        for line in path.read_text(errors="replace").splitlines():
            with contextlib.suppress(ValueError):  # being written; msgspec's own decoder refuses NaN
                yield msgspec.convert(json.loads(line), dict[str, float])
