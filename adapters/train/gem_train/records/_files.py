"""The files that records are read from: frames, and JSON lines."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from gem_core.episode import Episode
from gem_core.errors import RecordsError
from gem_core.specs import RecordSource
from gem_train.records._content import RecordedSummary, summary_fields, summary_of, unpacked_episode
from gem_train.records._frames import Frame, FrameReader
from gem_train.records._token_texts import TokenText
from gem_train.rollout.records import restored

_DECODING = (msgspec.DecodeError, ValueError, LookupError, TypeError, zlib.error)
"""What decoding raises for bytes that are no record."""


class Training(NamedTuple):
    """The part of an update that is about one episode."""

    file: FrameFile
    update: int
    frame: Frame
    start: int
    """Position in the body of the frame."""
    size: int

    def read(self) -> bytes:
        """The bytes. Raises `RecordsError` if the file is damaged there."""
        try:
            return self.file.body(self.frame)[self.start : self.start + self.size]
        except (OSError, ValueError) as error:
            raise RecordsError(f"{self.file.path}: {error}") from error


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
        self.started: dict[str, Any] = {}
        """Its first frame: settings, versions, detail, share, time."""
        self.texts: dict[int, TokenText] = {}
        self.updates: list[dict[str, Any]] = []
        """The heads of its updates."""
        self.trainings: list[tuple[str, Training]] = []
        """Each with the id of its episode."""
        self.metrics: list[dict[str, float]] = []
        self.open_rollouts: dict[str, str] = {}
        """Labels of the rollouts that have not ended, by id."""
        self._labels: dict[str, str] = {}
        self._reader = FrameReader(path)
        self._frames: list[Frame] = []
        self._damaged = 0
        self._numbered: Counter[str] = Counter()

    def refresh(self) -> bool:
        """Read the frames that were appended."""
        found = False
        try:
            for frame in self._reader.frames():
                found = True
                try:
                    self._take(frame)
                except _DECODING:
                    self._damaged += 1
        except (OSError, ValueError) as error:
            raise RecordsError(str(error)) from error
        return found

    def episode(self, index: int) -> Episode:
        """An episode. Raises `RecordsError` if the file is damaged there."""
        frame = self._frames[index]
        try:
            return unpacked_episode(self.body(frame))
        except (OSError, *_DECODING) as error:
            raise RecordsError(f"{self.path}: the episode {self.summaries[index].id} is damaged: {error}") from error

    def body(self, frame: Frame) -> bytes:
        """The body of a frame. Raises `OSError`, or `ValueError` if it is damaged."""
        return self._reader.body(frame)

    def gaps(self) -> Iterator[str]:
        """What is missing from the file."""
        if self._reader.rest:
            yield f"{self.path.name} ends within a record: its writer was killed, or is still writing."
        if damaged := self._damaged + self._reader.damaged:
            yield f"{self.path.name} has {_counted(damaged, 'damaged record')}."
        if lost := self._numbered["last"] - self._numbered["seen"] - damaged:
            yield f"{self.path.name} lacks {_counted(max(lost, 0), 'record')} that could not be written."
        if not self.started and not damaged:
            yield f"{self.path.name} is empty: its writer was killed when it began."

    def _take(self, frame: Frame) -> None:
        head = frame.head
        if "n" in head:
            self._numbered["seen"] += 1
            self._numbered["last"] = head["n"]
        kind = head["kind"]
        if kind == "episode":
            self.summaries.append(summary_of(head, self._labels.get(head["rollout"], "")))
            self._frames.append(frame)
        elif kind == "update":
            self._take_update(frame)
        elif kind == "texts":
            found = msgspec.msgpack.decode(self.body(frame))
            self.texts |= dict(zip(found["ids"], found["texts"], strict=True))
        elif kind == "metrics":
            self.metrics.append({**head["metrics"], "step": float(head["step"])})
        elif kind == "rollout":
            self._labels[head["id"]] = self.open_rollouts[head["id"]] = head["label"]
        elif kind == "rollout_end":
            self.open_rollouts.pop(head["id"], None)
        elif kind == "start":
            self.started = msgspec.json.decode(self.body(frame), type=dict[str, Any])

    def _take_update(self, frame: Frame) -> None:
        head, start = frame.head, 0
        for name, size in zip(head["episodes"], head["sizes"], strict=True):
            self.trainings.append((name, Training(self, head["number"], frame, start, size)))
            start += size
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
        self._bad: dict[int, str] = {}

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
        except (OSError, msgspec.DecodeError) as error:
            raise RecordsError(f"{self.path} has changed: {error}") from error

    def gaps(self) -> Iterator[str]:
        """What is missing from the file."""
        if self._rest > 0:
            yield f"{self.path.name} ends within a record: its writer was killed, or is still writing."
        for number, error in [*self._bad.items()][:3]:
            yield f"{self.path.name}, line {number}: {error}"
        if len(self._bad) > 3:
            yield f"{self.path.name} has {len(self._bad) - 3} more lines that are no episodes."
        yield from self.source.gaps

    def _take(self, line: bytes) -> None:
        self._lines += 1
        try:
            record = msgspec.json.decode(line, type=dict[str, Any])
            entry = self.source.entry_of(record) if self.source.entry_of else ""
            summary = summary_of(summary_fields(_episode(record)), self.source.split, entry)
        except msgspec.DecodeError as error:
            self._bad[self._lines] = str(error)
        else:
            self.summaries.append(summary)
            self._places.append((self._end, len(line)))
        self._end += len(line)


def _episode(record: dict[str, Any]) -> Episode:
    inner = record.get("episode")
    return restored(msgspec.convert(inner, dict[str, Any]) if isinstance(inner, dict) else record)


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"
