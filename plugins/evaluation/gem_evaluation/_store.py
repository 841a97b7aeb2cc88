"""The folder of an evaluation.

| file | contents |
| --- | --- |
| `run.json` | everything that could change a number, and how much is played |
| `episodes.jsonl` | finished episodes, in the order in which they ended |
| `failures.jsonl` | episodes that failed; one that is played again and finishes is in both files |
| `results.json`, `report.md` | statistics, written at the end and after an interruption |
| `regraded.json` | what `gem-core eval regrade` found |
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import msgspec

from gem_core.specs import RecordSource
from gem_evaluation._errors import EvaluationError
from gem_evaluation._finished import Finished
from gem_evaluation._records import (
    VERSION,
    EvaluatedEpisode,
    FailedEpisode,
    Key,
    Result,
    check_version,
    played_record,
    read_played,
)
from gem_train.rollout import as_utf8, drop_partial_line, encoded

RUN, EPISODES, FAILURES = "run.json", "episodes.jsonl", "failures.jsonl"


class Store:
    """The folder of an evaluation, open for writing. One process at a time has it.

    A finished episode is in the file when `add` returns. A line that a killed process or a full disk left unfinished
    is removed when the folder is opened again.

    Args:
        folder: made where it does not exist.
        identity: everything that could change a number.

    Raises:
        EvaluationError: it belongs to an evaluation with another identity, another process has it, or it is damaged.
    """

    def __init__(self, folder: Path, identity: Mapping[str, Any]) -> None:
        self.folder = folder
        with ExitStack() as opened:
            try:
                folder.mkdir(parents=True, exist_ok=True)
                opened.enter_context(_locked(folder))
                _check_identity(folder, identity)
                self._episodes = opened.enter_context(_appending(folder / EPISODES))
                self._failures = opened.enter_context(_appending(folder / FAILURES))
            except OSError as error:
                raise EvaluationError(f"the folder {folder} cannot be written: {error}") from error
            self.finished = Finished(read_results(folder))
            """The finished episodes, in numbers."""
            self.failures: dict[Key, FailedEpisode] = {
                one.key: one for one in read_failures(folder) if one.key not in self.finished
            }
            """The last failure of each episode that is not finished."""
            self._opened = opened.pop_all()

    def add(self, played: EvaluatedEpisode) -> None:
        """Write a finished episode. Raises `EvaluationError` if it cannot be written."""
        self._append(self._episodes, encoded(played_record(played), played.episode))
        self.finished.add(played.result)
        self.failures.pop(played.key, None)

    def fail(self, failure: FailedEpisode) -> None:
        """Write down a failure. Raises `EvaluationError` if it cannot be written."""
        failure = msgspec.structs.replace(failure, error=as_utf8(failure.error))
        self._append(self._failures, msgspec.json.encode({"version": VERSION, **msgspec.to_builtins(failure)}))
        self.failures[failure.key] = failure

    def _append(self, file: BinaryIO, line: bytes) -> None:
        end, rest = file.tell(), memoryview(line + b"\n")
        try:
            while rest:  # a disk that is nearly full takes a part
                rest = rest[file.write(rest) :]
        except OSError as error:
            with contextlib.suppress(OSError):
                file.truncate(end)
            file.seek(end)  # episodes that end in the same moment may still find room
            raise EvaluationError(
                f"{self.folder} cannot be written: {error}. All episodes before this one are kept; make room and run "
                "the same command again"
            ) from error

    def close(self) -> None:
        """Close the files."""
        self._opened.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_identity(folder: Path) -> dict[str, Any]:
    """Everything that could change a number of an evaluation. Raises `EvaluationError` where there is none."""
    try:
        document = msgspec.json.decode((folder / RUN).read_bytes(), type=dict[str, Any])
        check_version(document)
        return msgspec.convert(document.get("identity"), dict[str, Any])
    except FileNotFoundError as error:
        raise EvaluationError(f"{folder} is no folder of an evaluation: it has no {RUN}") from error
    except (OSError, msgspec.DecodeError, RecursionError) as error:
        raise EvaluationError(f"{folder / RUN} cannot be read: {error}") from error


def record_source(folder: Path) -> RecordSource | None:
    """The episodes of an evaluation for `gem_train.records.open_records`; `None` if it is no such folder."""
    if not ((folder / RUN).exists() and (folder / EPISODES).exists()):
        return None
    identity: dict[str, Any] = {}
    gaps: list[str] = []
    try:
        identity = read_identity(folder)
        failed = {one.key for one in read_failures(folder)}
        if left := failed and failed - {one.key for one in read_results(folder)}:
            gaps = [f"Episodes that failed and are not among these: {len(left)}."]
    except EvaluationError as error:
        gaps = [str(error)]
    return RecordSource(
        "evaluation",
        folder / EPISODES,
        "eval",
        settings=identity,
        versions=identity.get("versions", {}),
        gaps=gaps,
        entry_of=_entry_of,
    )


def _entry_of(record: Mapping[str, Any]) -> str:
    return msgspec.convert(record.get("key"), Key).entry


def read_results(folder: Path) -> Iterator[Result]:
    """The finished episodes of a folder in numbers. Raises `EvaluationError` for a damaged file."""
    for record in _records(folder / EPISODES, _Finished):
        yield record.result


def read_episodes(folder: Path) -> Iterator[EvaluatedEpisode]:
    """The finished episodes of a folder, whole. Raises `EvaluationError` for a damaged file."""
    for record in _records(folder / EPISODES, dict[str, Any]):
        try:
            yield read_played(record)
        except (msgspec.ValidationError, KeyError) as error:
            raise EvaluationError(f"{folder / EPISODES} is damaged: {error}") from error


def read_failures(folder: Path) -> Iterator[FailedEpisode]:
    """All failures of a folder. Raises `EvaluationError` for a damaged file."""
    yield from _records(folder / FAILURES, FailedEpisode)


class Difference(msgspec.Struct, frozen=True):
    """A setting that two evaluations do not share; `None` where one has no such setting."""

    setting: str
    """Its place, for example `model.temperature`."""
    first: Any
    second: Any


def differences(first: Mapping[str, Any], second: Mapping[str, Any], place: str = "") -> Iterator[Difference]:
    """Where two identities differ, or two parts of them at the same place."""
    for key in sorted({*first, *second}):
        one, other = first.get(key), second.get(key)
        setting = f"{place}.{key}" if place else key
        if isinstance(one, dict) and isinstance(other, dict):
            yield from differences(one, other, setting)  # pyright: ignore[reportUnknownArgumentType]
        elif one != other:
            yield Difference(setting, one, other)


class _Finished(msgspec.Struct):
    result: Result


def _records(path: Path, kind: Any) -> Iterator[Any]:
    if not path.exists():
        return
    decoder = msgspec.json.Decoder(kind)
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.endswith(b"\n"):
                return  # being written
            try:
                yield decoder.decode(line)
            except (msgspec.DecodeError, RecursionError) as error:
                raise EvaluationError(f"{path}, line {number}, is damaged: {error}") from error


def _appending(path: Path) -> BinaryIO:
    drop_partial_line(path)
    file = path.open("r+b", buffering=0)
    file.seek(0, os.SEEK_END)
    return file


def _locked(folder: Path) -> BinaryIO:
    lock = (folder / ".lock").open("ab")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise EvaluationError(f"another process is at work in {folder}; wait for it or choose another folder") from None
    return lock


def _check_identity(folder: Path, identity: Mapping[str, Any]) -> None:
    wanted = msgspec.to_builtins(identity)
    if not (folder / RUN).exists():
        partial = folder / f"{RUN}.partial"  # may be left of a process that was killed
        if any(one.name not in (".lock", partial.name) for one in folder.iterdir()):
            raise EvaluationError(f"{folder} is not empty and has no {RUN}; choose another folder")
        partial.write_bytes(msgspec.json.format(msgspec.json.encode({"version": VERSION, "identity": wanted})))
        partial.rename(folder / RUN)
        return
    before = read_identity(folder)
    if found := [*differences(before, wanted)]:
        shown = "\n".join(f"  {one.setting}: {one.first!r:.200} before, {one.second!r:.200} now" for one in found)
        raise EvaluationError(
            f"{folder} has the episodes of another experiment:\n{shown}\nChoose another folder, or use the "
            "former settings"
        )
