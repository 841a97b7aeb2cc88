"""The files that records are read from: frames, and JSON lines."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from gem_core.episode import Episode
from gem_core.errors import RecordsError
from gem_core.records.content import (
    RecordedSummary,
    Trained,
    summary_fields,
    summary_of,
    unpacked_episode,
    unpacked_training,
)
from gem_core.records.frames import Frame, read_body, read_frames
from gem_core.rollout.records import restored
from gem_core.specs import RecordSource


class Training(NamedTuple):
    """Where the training on an episode is."""

    path: Path
    update: int
    start: int
    size: int

    def read(self, turns: int) -> Trained:
        """The training on the episode. Raises `RecordsError` if the file is damaged."""
        frame = Frame({}, self.start, self.size)
        try:
            return unpacked_training(read_body(self.path, frame), self.update, turns)
        except (OSError, ValueError, zlib.error) as error:
            raise RecordsError(f"{self.path} is damaged at byte {self.start}: {error}") from error


class FrameFile:
    """A file of `RunRecorder`. `refresh` reads what was appended."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.start: dict[str, Any] = {}
        """What the file starts with: settings, versions, detail."""
        self.labels: dict[str, str] = {}
        """What each rollout is for, by the id of the rollout."""
        self.frames: list[Frame] = []
        """One for each episode."""
        self.trainings: dict[str, Training] = {}
        """By the id of the episode."""
        self.updates: list[dict[str, Any]] = []
        """The heads of the updates."""
        self.texts: dict[int, str] = {}
        self.lost = 0
        """Frames that could not be written."""
        self._end = 0

    def refresh(self) -> bool:
        """Read the frames that were appended. Returns whether there were any.

        Raises:
            RecordsError: it is no such file, or it cannot be read.
        """
        before = self._end
        try:
            for frame in read_frames(self.path, self._end):
                self._take(frame)
                self._end = frame.start + frame.size
        except (OSError, ValueError, KeyError, msgspec.DecodeError) as error:
            raise RecordsError(f"{self.path} cannot be read: {error}") from error
        return self._end > before

    @property
    def unread(self) -> int:
        """Bytes after the last whole frame."""
        return self.path.stat().st_size - self._end if self._end else 0

    def summaries(self, trainings: dict[str, Training]) -> Iterator[RecordedSummary]:
        """The summary of each episode."""
        for frame in self.frames:
            training = trainings.get(frame.head["id"])
            split = self.labels.get(frame.head["rollout"], "")
            yield summary_of(frame.head, split, training.update if training else None)

    def episode(self, index: int) -> Episode:
        """An episode. Raises `RecordsError` if the file is damaged."""
        try:
            return unpacked_episode(read_body(self.path, self.frames[index]))
        except (OSError, ValueError, KeyError, IndexError, zlib.error) as error:
            raise RecordsError(f"{self.path} is damaged at byte {self.frames[index].start}: {error}") from error

    def _take(self, frame: Frame) -> None:
        head = frame.head
        if head["kind"] == "start":
            self.start = msgspec.json.decode(read_body(self.path, frame), type=dict[str, Any])
        elif head["kind"] == "rollout":
            self.labels[head["id"]] = head["label"]
        elif head["kind"] == "episode":
            self.frames.append(frame)
        elif head["kind"] == "update":
            self._take_update(frame)
        elif head["kind"] == "texts":
            found = msgspec.msgpack.decode(read_body(self.path, frame))
            self.texts |= dict(zip(found["ids"], found["texts"], strict=True))
        elif head["kind"] == "lost":
            self.lost += head["frames"]

    def _take_update(self, frame: Frame) -> None:
        self.updates.append(frame.head)
        start = frame.start
        for name, size in zip(frame.head["episodes"], frame.head["sizes"], strict=True):
            self.trainings[name] = Training(self.path, frame.head["number"], start, size)
            start += size


class LineFile:
    """A file of JSON lines, one episode each. `refresh` reads what was appended."""

    def __init__(self, source: RecordSource) -> None:
        self.source = source
        self.path = source.lines
        self.unread = 0
        """Bytes after the last whole line."""
        self._end = 0
        self._places: list[tuple[int, int]] = []
        self._summaries: list[RecordedSummary] = []

    def refresh(self) -> bool:
        """Read the lines that were appended. Returns whether there were any.

        Raises:
            RecordsError: a line is no episode, or one of a later version.
        """
        before = self._end
        try:
            with self.path.open("rb") as file:
                file.seek(self._end)
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    fields = summary_fields(self._decoded(line))
                    self._summaries.append(summary_of(fields, self.source.split, None))
                    self._places.append((self._end, len(line)))
                    self._end += len(line)
                self.unread = self.path.stat().st_size - self._end
        except OSError as error:
            raise RecordsError(f"{self.path} cannot be read: {error}") from error
        return self._end > before

    def summaries(self) -> list[RecordedSummary]:
        """The summary of each episode."""
        return self._summaries

    def episode(self, index: int) -> Episode:
        """An episode. Raises `RecordsError` if the file has changed."""
        start, size = self._places[index]
        with self.path.open("rb") as file:
            file.seek(start)
            return self._decoded(file.read(size))

    def _decoded(self, line: bytes) -> Episode:
        try:
            record = msgspec.json.decode(line, type=dict[str, Any])
            inner = record.get("episode")
            return restored(msgspec.convert(inner, dict[str, Any]) if isinstance(inner, dict) else record)
        except msgspec.DecodeError as error:
            raise RecordsError(f"{self.path}, line {len(self._places) + 1}: {error}") from error
