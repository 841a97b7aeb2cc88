"""Episodes as JSON lines."""

from __future__ import annotations

import os
import threading
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec

from gem_core.episode import Episode
from gem_core.errors import GemError, convert_errors
from gem_core.hookspecs import hookimpl
from gem_core.plugins import manager
from gem_train.rollout.records import MAX_DEPTH, recorded

_CONTAINERS = (Mapping, list, tuple, set, frozenset)


class Recorder:
    """Writes each episode as one line of JSON, through the `gem_episode_end` hook.

    Lines are whole and flushed, whichever thread ends an episode. What JSON cannot say is written as text: objects in
    an info by their `repr`, integers of more than 64 bits in hexadecimal digits, lone surrogates escaped, and what is
    nested more than `MAX_DEPTH` deep as a text of JSON. NaN is null. Read back with
    `gem_train.records.read_episodes`, which gives NaN again where a log-probability is null;
    `gem_train.rollout.records` has the format.

    Args:
        path: appended to; its folder is made.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        drop_partial_line(self.path)
        self._file = self.path.open("ab")
        self._lock = threading.Lock()

    @hookimpl
    def gem_episode_end(self, episode: Episode) -> None:
        """Write one episode."""
        line = encoded(recorded(episode), episode)
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


def drop_partial_line(path: Path) -> None:
    """Cut off what a killed process left behind the last whole line of a file; make the file if there is none.

    Raises:
        OSError: it cannot be opened or written.
    """
    with path.open("ab"):
        pass
    with path.open("r+b") as file:
        file.truncate(_end_of_lines(file))


def _end_of_lines(file: BinaryIO) -> int:
    place = file.seek(0, os.SEEK_END)
    while place > 0:
        begin = max(0, place - (1 << 16))
        file.seek(begin)
        found = file.read(place - begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        place = begin
    return 0


def as_utf8(text: str) -> str:
    """The text with half characters (lone surrogates), which UTF-8 does not have, written as escapes."""
    # Not a method of the text, which may be of a class with one of its own.
    return str.encode(text, "utf-8", "backslashreplace").decode()


def encoded(record: Mapping[str, Any], episode: Episode) -> bytes:
    """A record that contains the record of an episode, as JSON in one line; see `Recorder`."""
    # Rare: lone surrogates, dict keys that JSON does not have, large integers, a repr or another method that raises.
    with suppress(GemError), convert_errors(lambda _: GemError(), passing=()):
        if not any(_is_deep(turn.info, 1) for turn in episode.turns):
            return msgspec.json.encode(record, enc_hook=repr)
    return encoded_plain(record)


def encoded_plain(value: Any) -> bytes:
    """Any value as JSON in one line; what JSON cannot say is written as text, see `Recorder`."""
    return msgspec.json.encode(_plain(value))


def _is_deep(container: Any, depth: int) -> bool:
    values = cast("Iterable[Any]", container.values() if isinstance(container, Mapping) else container)
    inner: list[Any] = [value for value in values if isinstance(value, _CONTAINERS)]
    return bool(inner) and (depth >= MAX_DEPTH or any(_is_deep(value, depth + 1) for value in inner))


def _plain(value: Any, depth: int = 0) -> Any:
    """What JSON can say of a value. Below `MAX_DEPTH` levels, a list or a mapping is a text with its JSON."""
    with suppress(GemError), convert_errors(lambda _: GemError(), passing=()):
        return _plain_value(value, depth)
    return "<what cannot be read>"


def _plain_value(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, int):
        number = int.__index__(value)
        return number if -(1 << 63) <= number < 1 << 64 else hex(number)
    if isinstance(value, str):
        return as_utf8(value)
    if isinstance(value, msgspec.Struct):
        return _plain(msgspec.structs.asdict(value), depth)
    if isinstance(value, _CONTAINERS):
        if depth >= MAX_DEPTH:
            return _nested(value)
        if isinstance(value, Mapping):
            pairs = cast("Mapping[Any, Any]", value).items()
            return {_key(key): _plain(one, depth + 1) for key, one in pairs}
        return [_plain(one, depth + 1) for one in value]  # pyright: ignore[reportUnknownVariableType]
    return _plain_value(_shown(value), depth)


def _key(key: Any) -> str:
    return _plain(key if isinstance(key, str) else _shown(key))


def _shown(value: Any) -> str:
    try:
        return repr(value)
    except Exception as error:  # an environment's own, or a RecursionError of what is nested in it
        return f"<{type(value).__name__}, whose repr raised {type(error).__name__}>"


def _nested(value: Any) -> str:
    """The JSON of lists and mappings, however deep; `...` stands for what contains itself."""
    written: list[str] = []
    open_: set[int] = set()
    # What is left to write, the next one last: texts, values, and the ids of containers that end there.
    left: list[tuple[str, Any]] = [("value", value)]
    while left:
        what, one = left.pop()
        if what == "text":
            written.append(one)
        elif what == "end":
            open_.remove(one)
        elif not isinstance(one, _CONTAINERS):
            written.append(msgspec.json.encode(_plain(one)).decode())
        elif id(one) in open_:  # pyright: ignore[reportUnknownArgumentType]
            written.append('"..."')
        else:
            open_.add(id(one))  # pyright: ignore[reportUnknownArgumentType]
            left.append(("end", id(one)))  # pyright: ignore[reportUnknownArgumentType]
            left += reversed([*_pieces(one)])
    return "".join(written)


def _pieces(container: Any) -> Iterator[tuple[str, Any]]:
    mapping = isinstance(container, Mapping)
    yield "text", "{" if mapping else "["
    for number, one in enumerate(container):
        yield "text", "," if number else ""
        if mapping:
            yield "text", msgspec.json.encode(_key(one)).decode() + ":"
        yield "value", container[one] if mapping else one
    yield "text", "}" if mapping else "]"
