"""Reads the records of a run, whatever wrote them."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, Literal

import msgspec

from gem_core.episode import Episode
from gem_core.errors import RecordsError
from gem_core.plugins import manager
from gem_core.specs import RecordSource
from gem_train.records._content import RecordedEpisode, RecordedSummary, Trained, add_training, untrained
from gem_train.records._files import DAMAGED, EpisodeFile, FrameFile, LineFile, Training
from gem_train.records._recorder import SUFFIX
from gem_train.records._token_texts import TokenText, token_pieces
from gem_train.records._warnings import evaluation_warnings, training_warnings

_METRICS = "metrics.jsonl"
_SUBFOLDER = "records"
_SPARE_NUMBERS = 1 << 24
"""Of all updates of an episode, beside 8 for each byte: a few bytes take memory for each turn, or inflate."""


class Records:
    """The records of a run. Episodes are decoded on demand.

    Args:
        path: a file or a folder; see `open_records`.

    Raises:
        RecordsError: as `open_records`.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.name = self.path.resolve().name
        """The name of the folder or file."""
        self.summaries: list[RecordedSummary] = []
        """One for each episode. `refresh` appends, and sets `update` where an update has come."""
        self.texts: dict[int, TokenText] = {}
        """The text of each token id, or its bytes where it has a part of a character; empty if unknown."""
        self._frames: dict[Path, FrameFile] = {}
        self._lines: dict[Path, LineFile] = {}
        self._unreadable: dict[Path, str] = {}
        self._places: list[tuple[EpisodeFile, int]] = []
        self._taken: defaultdict[Path, int] = defaultdict(int)
        self._indices: dict[str, int] = {}
        self._trainings: dict[str, list[Training]] = defaultdict(list)
        self.refresh()
        if not (self._frames or self._lines):
            raise RecordsError(next(iter(self._unreadable.values()), _nothing(self.path)))
        if self.path.is_file() and not self.summaries and (gaps := self.gaps) and self._lines:
            raise RecordsError(f"{self.path.parent}/{gaps[0]}")

    def refresh(self) -> bool:
        """Read what has been appended since, and new files. Returns whether there was anything new."""
        self._find_files()
        changed = [one for one in [*self._frames.values(), *self._lines.values()] if self._refreshed(one)]
        for file in changed:
            for number in range(self._taken[file.path], len(file.summaries)):
                self._indices.setdefault(file.summaries[number].id, len(self.summaries))
                self.summaries.append(file.summaries[number])
                self._places.append((file, number))
            self._taken[file.path] = len(file.summaries)
        for frames in self._frames.values():
            self.texts |= frames.texts
            for name, training in frames.trainings:
                self._trainings[name].append(training)
            frames.texts.clear()
            frames.trainings.clear()
        self._set_updates()
        return bool(changed)

    @property
    def kind(self) -> str:
        """`training`, `evaluation`, or `episodes` of something else."""
        if self._frames:
            return "training"
        return next((one.source.kind for one in self._lines.values()), "episodes")

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the run, those of the last process that started; empty if unknown."""
        return self._merged("settings")

    @property
    def versions(self) -> dict[str, str]:
        """Versions of the distributions that took part; empty if unknown."""
        return {name: str(version) for name, version in self._merged("versions").items()}

    @property
    def metrics(self) -> list[dict[str, float]]:
        """The metrics of each update, with its number as `step`; empty if unknown."""
        folder = self.path if self.path.is_dir() else self.path.parent
        places = [folder / _METRICS, *([folder.parent / _METRICS] if folder.name == _SUBFOLDER else [])]
        lines: dict[float, dict[str, float]] = {}
        recorded = (line for file in self._by_time() for line in file.metrics)
        for line in [*recorded, *(line for place in places for line in _metrics(place))]:
            lines.setdefault(line["step"], {}).update(line)
        return [lines[step] for step in sorted(lines)]

    @property
    def warnings(self) -> list[str]:
        """Why a training cannot learn, or what explains the score of an evaluation; a sentence each."""
        if self.kind == "evaluation":
            return [*evaluation_warnings(self.summaries)]
        over = not any(file.open_rollouts for file in self._frames.values())
        return [*training_warnings(self.metrics, self.summaries, over=over)]

    @property
    def gaps(self) -> list[str]:
        """What is missing, a sentence each."""
        files = [*self._frames.values(), *self._lines.values()]
        gaps = [gap for file in files for gap in file.gaps()]
        return [*self._unreadable.values(), *gaps, *self._run_gaps()]

    def episode(self, index: int) -> RecordedEpisode:
        """The episode of `summaries[index]`.

        Raises:
            RecordsError: the file is damaged there.
        """
        file, number = self._places[index]
        episode, summary = file.episode(number), self.summaries[index]
        trainings = self._trainings.get(summary.id, ()) if self._indices[summary.id] == index else ()
        return RecordedEpisode(summary, episode, _updates(trainings, episode))

    def token_texts(self, ids: Iterable[int]) -> list[str]:
        """The text of each token of a sequence; a character of several tokens is that of the last of them.

        Raises:
            KeyError: the records do not have the text of a token.
        """
        return token_pieces(self.texts[one] for one in ids)

    def _find_files(self) -> None:
        for path in _frame_files(self.path):
            if path not in self._unreadable:
                self._frames.setdefault(path, FrameFile(path))
        if not self._lines:  # asked once, because a plugin may read a whole folder for its answer
            for source in _line_sources(self.path, alone=not self._frames):
                self._lines.setdefault(source.lines, LineFile(source))

    def _refreshed(self, file: FrameFile | LineFile) -> bool:
        try:
            return file.refresh()
        except RecordsError as error:
            self._unreadable[file.path] = str(error)
            self._frames.pop(file.path, None)
            self._lines.pop(file.path, None)
            return False

    def _set_updates(self) -> None:
        for name, trainings in self._trainings.items():
            index = self._indices.get(name)
            first = min(trainings, key=lambda training: training.update)
            if index is not None and self.summaries[index].update != first.update:
                found = {"update": first.update, "version": first.version}
                self.summaries[index] = msgspec.structs.replace(self.summaries[index], **found)

    def _by_time(self) -> list[FrameFile]:
        return sorted(self._frames.values(), key=lambda file: file.started.time if file.started else 0.0)

    def _merged(self, name: Literal["settings", "versions"]) -> dict[str, Any]:
        """The values of all files; the process that started last wins."""
        merged: dict[str, Any] = {}
        for lines in self._lines.values():
            merged |= getattr(lines.source, name)
        for frames in self._by_time():
            merged |= getattr(frames.started, name, {})
        return merged

    def _run_gaps(self) -> Iterator[str]:
        heads = [head for file in self._frames.values() for head in file.updates]
        trained = _intervals({head.number for head in heads})
        if absent := [(first[1] + 1, second[0] - 1) for first, second in pairwise(trained)]:
            yield f"There is no record of {_numbers('update', absent)}."
        ranks: dict[int, set[int]] = defaultdict(set)
        for head in heads:
            ranks[head.number].add(head.rank)
        if partial := _intervals({head.number for head in heads if len(ranks[head.number]) < head.ranks}):
            yield f"Not all training processes left a record of {_numbers('update', partial)}."
        missing = _intervals({head.number for head in heads if any(one not in self._indices for one in head.episodes)})
        if missing:
            count = sum(name not in self._indices for name in self._trainings)
            yield f"Episodes of {_numbers('update', missing)} are in no file: {count}."
        open_ = [one for file in self._frames.values() for one in file.open_rollouts.values()]
        if open_:
            yield "The run did not end: it was killed, or is still going on."
        elif self._frames and not trained and any(one.split == "train" for one in self.summaries):
            yield "No process that trains left a record."


def open_records(path: str | Path) -> Records:
    """Open the records of a run.

    What is damaged or missing is left out, and a sentence in `Records.gaps` says so.

    Args:
        path: a folder or file of a training with `record`, its `report` folder, a file of `Recorder`,
            the folder of an evaluation, or what a plugin names through `gem_record_sources`.

    Raises:
        RecordsError: nothing can be read.
    """
    return Records(path)


def read_episodes(path: str | Path) -> Iterator[RecordedEpisode]:
    """The episodes of a recording, whatever its version, one at a time. Those that are damaged are left out.

    Raises:
        RecordsError: nothing can be read.
    """
    records = open_records(path)
    for index in range(len(records.summaries)):
        with suppress(RecordsError):
            yield records.episode(index)


def _updates(trainings: Iterable[Training], episode: Episode) -> list[Trained]:
    in_order = sorted(trainings, key=lambda one: one.update)
    room = _SPARE_NUMBERS + 8 * sum(one.size for one in in_order)
    updates: list[Trained] = []
    for number, parts in groupby(in_order, key=lambda one: one.update):
        room -= 8 * len(episode.turns)
        if room < 0:
            raise RecordsError(f"{in_order[0].file.path}: the updates of {episode.id} are too many for their bytes")
        updates.append(untrained(number, len(episode.turns)))
        for part in parts:
            try:
                room -= add_training(updates[-1], part.read())
            except (OSError, *DAMAGED):
                part.file.damaged_updates.add(part.body)
    return updates


def _frame_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path] if path.suffix == SUFFIX else []
    if not path.is_dir():
        raise RecordsError(f"there is no file or folder {path}")
    return sorted(one for one in [*path.glob(f"*{SUFFIX}"), *path.glob(f"{_SUBFOLDER}/*{SUFFIX}")] if one.is_file())


def _line_sources(path: Path, *, alone: bool) -> list[RecordSource]:
    """Files of JSON lines; those that no plugin knows only if there is nothing else."""
    if path.is_file():
        return [] if path.suffix == SUFFIX else [RecordSource("episodes", path)]
    sources: list[RecordSource] = []
    manager.load_all()
    manager.notify("gem_record_sources", path=path, sources=sources)
    if sources or not alone:
        return sources
    lines = (one for one in sorted(path.glob("*.jsonl")) if one.name != _METRICS and one.is_file())
    return [RecordSource("episodes", one) for one in lines]


def _nothing(path: Path) -> str:
    return (
        f"{path} has no records: neither a file *{SUFFIX}, nor JSON lines of episodes, nor the folder of an evaluation."
        " Train with record=full, or record with `gem_train.rollout.recording`."
    )


def _intervals(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Numbers as intervals, each with its first and last one."""
    intervals: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if intervals and number == intervals[-1][1] + 1:
            intervals[-1] = (intervals[-1][0], number)
        else:
            intervals.append((number, number))
    return intervals


def _numbers(thing: str, intervals: Sequence[tuple[int, int]]) -> str:
    """A few numbers in words: `update 3`, `updates 3, 5 to 9`."""
    shown = ", ".join(str(first) if first == last else f"{first} to {last}" for first, last in intervals[:5])
    one = len(intervals) == 1 and intervals[0][0] == intervals[0][1]
    return f"{thing}{'' if one else 's'} {shown}{', and others' if len(intervals) > 5 else ''}"


def _metrics(path: Path) -> Iterator[dict[str, float]]:
    """The lines of a report that are metrics; the last one may be on its way."""
    try:
        text = path.read_text(errors="replace") if path.is_file() else ""
    except OSError:
        return
    for line in text.splitlines():
        with suppress(*DAMAGED):  # msgspec's own decoder refuses NaN
            found = msgspec.convert(json.loads(line), dict[str, float])
            if math.isfinite(found.get("step", math.nan)):
                yield found
