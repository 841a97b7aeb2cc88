"""Episodes as JSON lines."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from gem_core.episode import Episode
from gem_core.hookspecs import hookimpl
from gem_core.plugins import manager
from gem_core.rollout.records import recorded, restored


class Recorder:
    """Writes each episode as one line of JSON, through the `gem_episode_end` hook.

    Lines are whole and flushed, whichever thread ends an episode. What JSON cannot say is written as text: objects in
    an info by their `repr`, lone surrogates escaped, NaN as null. Read back with `read_episodes`, which gives NaN again
    where a log-probability is null; `gem_core.rollout.records` has the format.

    Args:
        path: appended to; its folder is made.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = self.path.open("ab")
        self._lock = threading.Lock()

    @hookimpl
    def gem_episode_end(self, episode: Episode) -> None:
        """Write one episode."""
        line = _encode(episode)
        with self._lock:
            self._file.write(line + b"\n")
            self._file.flush()

    def close(self) -> None:
        """Close the file. Safe to call twice."""
        self._file.close()


@contextmanager
def recording(path: str | Path) -> Generator[Recorder]:
    """Record every episode of this process to `path` meanwhile."""
    recorder = Recorder(path)
    manager.register(recorder)
    try:
        yield recorder
    finally:
        manager.unregister(recorder)
        recorder.close()


def read_episodes(path: str | Path) -> Iterator[Episode]:
    """The episodes of a recording, in the order they ended; recordings of 0.1.0 included.

    Raises:
        msgspec.ValidationError, msgspec.DecodeError: a line is not an episode, or one of a later version.
    """
    with Path(path).open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                yield restored(msgspec.json.decode(line, type=dict[str, Any]))
            except msgspec.DecodeError as error:
                raise type(error)(f"{path}, line {number}: {error}") from error


def _encode(episode: Episode) -> bytes:
    record = recorded(episode)
    try:
        return msgspec.json.encode(record, enc_hook=repr)
    except (UnicodeEncodeError, TypeError):
        # Rare: lone surrogates in a text, or dict keys that JSON does not have.
        return msgspec.json.encode(_plain(record))


def _plain(value: Any) -> Any:
    """What JSON can say of a value."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, msgspec.Struct):
        return _plain(msgspec.structs.asdict(value))
    if isinstance(value, Mapping):
        return {_plain(key if isinstance(key, str) else repr(key)): _plain(one) for key, one in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(one) for one in value]  # pyright: ignore[reportUnknownVariableType]
    return _plain(repr(value))
