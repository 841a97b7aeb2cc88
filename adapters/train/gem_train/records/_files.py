"""The files that records are read from: frames, and JSON lines."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from gem_core.episode import Episode
from gem_core.errors import RecordsError
from gem_core.specs import RecordSource
from gem_train.records._content import RecordedSummary, summary_of, unpacked_episode
from gem_train.records._frames import Body, Frame, FrameReader
from gem_train.records._heads import (
    EpisodeHead,
    MetricsHead,
    RolloutEndHead,
    RolloutHead,
    StartBody,
    StartHead,
    TextsBody,
    TextsHead,
    UpdateHead,
    read_head,
    summary_in,
)
from gem_train.records._token_texts import TokenText
from gem_train.rollout.records import check_depth, restored

DAMAGED = (msgspec.DecodeError, ValueError, LookupError, TypeError, ArithmeticError, RecursionError, zlib.error)
"""What decoding raises for bytes that are no record."""

_SHOWN_LINES = 3


class Training(NamedTuple):
    """The part of an update that is about one episode."""

    file: FrameFile
    update: int
    version: int
    """Updates of the policy before it."""
    body: Body
    """Of the frame of the update."""
    start: int
    """Position in the body."""
    size: int

    def read(self) -> bytes:
        """The bytes. Raises `OSError`, or `ValueError` if the file is damaged there."""
        return self.file.part(self.body, self.start, self.size)


class EpisodeFile(Protocol):
    """A file with episodes."""

    path: Path
    summaries: list[RecordedSummary]
    """One for each episode."""

    def refresh(self) -> bool:
        """Read what was appended. Returns whether something was.

        Raises:
            RecordsError: it cannot be read.
        """
        ...

    def episode(self, index: int) -> Episode:
        """An episode. Raises `RecordsError` if the file is damaged there."""
        ...

    def gaps(self) -> Iterator[str]:
        """What is missing from it, a sentence each."""
        ...


class FrameFile:
    """A file of `RunRecorder`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.summaries: list[RecordedSummary] = []
        self.started: StartBody | None = None
        """Its first frame, if it is whole."""
        self.texts: dict[int, TokenText] = {}
        self.updates: list[UpdateHead] = []
        self.trainings: list[tuple[str, Training]] = []
        """Each with the id of its episode."""
        self.damaged_updates: set[Body] = set()
        """Those of which an episode could not read its part."""
        self.metrics: list[dict[str, float]] = []
        self.open_rollouts: dict[str, str] = {}
        """Labels of the rollouts that have not ended, by id."""
        self._labels: dict[str, str] = {}
        self._reader = FrameReader(path)
        self._bodies: list[Body] = []
        """Of the episodes."""
        self._checked: set[Body] = set()
        """Of the updates, those whose checksum is right."""
        self._damaged = 0
        self._seen = 0
        """Frames with a number."""
        self._last = 0
        """The number of the last of them."""

    def refresh(self) -> bool:
        """Read the frames that were appended."""
        found = False
        try:
            for frame in self._reader.frames():
                found = True
                try:
                    self._take(frame)
                except DAMAGED:
                    self._damaged += 1
        except (OSError, ValueError) as error:
            raise RecordsError(str(error)) from error
        return found

    def episode(self, index: int) -> Episode:
        """An episode. Raises `RecordsError` if the file is damaged there."""
        summary = self.summaries[index].summary
        try:
            return unpacked_episode(self._reader.read(self._bodies[index]), summary.turns)
        except (OSError, *DAMAGED) as error:
            raise RecordsError(f"{self.path}: the episode {summary.id} is damaged: {error}") from error

    def part(self, body: Body, start: int, size: int) -> bytes:
        """Bytes of the body of an update. Raises `OSError`, or `ValueError` if the body is damaged."""
        if body not in self._checked:
            self._reader.read(body)
            self._checked.add(body)
        return self._reader.part(body, start, size)

    def gaps(self) -> Iterator[str]:
        """What is missing from the file."""
        if self._reader.rest:
            yield f"{self.path.name} ends within a record: its writer was killed, or is still writing."
        if damaged := self._damaged + self._reader.damaged + len(self.damaged_updates):
            yield f"{self.path.name} has {_counted(damaged, 'damaged record')}."
        if (lost := self._last - self._seen - self._damaged - self._reader.damaged) > 0:
            yield f"{self.path.name} lacks {_counted(lost, 'record')} that could not be written."
        if self.started is None and not damaged:
            yield f"{self.path.name} is empty: its writer was killed when it began."

    def _take(self, frame: Frame) -> None:
        head = read_head(frame.head)
        if isinstance(head, EpisodeHead):
            summary = RecordedSummary(summary_in(frame.head), head.data_index, self._labels.get(head.rollout, ""))
            self.summaries.append(summary)
            self._bodies.append(frame.body)
        elif isinstance(head, UpdateHead):
            self._take_update(head, frame.body)
        elif isinstance(head, TextsHead):
            found = msgspec.msgpack.decode(self._reader.read(frame.body), type=TextsBody)
            self.texts |= dict(zip(found.ids, found.texts, strict=True))
        elif isinstance(head, MetricsHead):
            self.metrics.append({**head.metrics, "step": float(head.step)})
        elif isinstance(head, RolloutHead):
            self._labels[head.id] = self.open_rollouts[head.id] = head.label
        elif isinstance(head, RolloutEndHead):
            self.open_rollouts.pop(head.id, None)
        elif isinstance(head, StartHead):
            started = msgspec.json.decode(self._reader.read(frame.body), type=StartBody)
            check_depth(started.settings)
            self.started = started
        if head.n is not None:
            self._seen += 1
            self._last = head.n

    def _take_update(self, head: UpdateHead, body: Body) -> None:
        if len(head.episodes) != len(head.sizes) or sum(head.sizes) != body.size:
            raise ValueError("the parts of an update do not make up its body")
        version = head.number - 1 if head.version is None else head.version
        starts = accumulate(head.sizes, initial=0)
        for name, size, start in zip(head.episodes, head.sizes, starts, strict=False):
            self.trainings.append((name, Training(self, head.number, version, body, start, size)))
        self.updates.append(head)


class LineFile:
    """A file of JSON lines, one episode each."""

    def __init__(self, source: RecordSource) -> None:
        self.path = source.lines
        self.summaries: list[RecordedSummary] = []
        self.source = source
        self._end = 0
        self._rest = 0
        self._lines = 0
        self._places: list[tuple[int, int]] = []
        self._bad: list[tuple[int, str]] = []
        """Numbers and errors of the first lines that are no episodes."""
        self._bad_count = 0

    def refresh(self) -> bool:
        """Read the lines that were appended."""
        before = self._end
        try:
            with self.path.open("rb") as file:
                size = file.seek(0, 2)
                file.seek(self._end)
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    self._take(line)
                self._rest = size - self._end
        except OSError as error:
            raise RecordsError(f"{self.path} cannot be read: {error}") from error
        return self._end > before

    def episode(self, index: int) -> Episode:
        """An episode. Raises `RecordsError` if the file has changed."""
        start, size = self._places[index]
        try:
            with self.path.open("rb") as file:
                file.seek(start)
                return _episode(msgspec.json.decode(file.read(size), type=dict[str, Any]))
        except (OSError, *DAMAGED) as error:
            raise RecordsError(f"{self.path} has changed: {error}") from error

    def gaps(self) -> Iterator[str]:
        """What is missing from the file."""
        if self._rest > 0:
            yield f"{self.path.name} ends within a record: its writer was killed, or is still writing."
        for number, error in self._bad:
            yield f"{self.path.name}, line {number}: {error}"
        if more := self._bad_count - len(self._bad):
            yield f"{self.path.name} has {more} more lines that are no episodes."
        yield from self.source.gaps

    def _take(self, line: bytes) -> None:
        self._lines += 1
        try:
            record = msgspec.json.decode(line, type=dict[str, Any])
            entry = self.source.entry_of(record) if self.source.entry_of else ""
            summary = summary_of(_episode(record), self.source.split, entry)
        except DAMAGED as error:
            self._bad_count += 1
            if len(self._bad) < _SHOWN_LINES:
                self._bad.append((self._lines, str(error)))
        else:
            self.summaries.append(summary)
            self._places.append((self._end, len(line)))
        self._end += len(line)


def _episode(record: dict[str, Any]) -> Episode:
    inner = record.get("episode")
    return restored(msgspec.convert(inner, dict[str, Any]) if isinstance(inner, dict) else record)


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"
