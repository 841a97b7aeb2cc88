"""Files on their way into a shell's root and out of it: a table of what there is, and the contents behind it.

length of the table (8 bytes) | table: JSON, a row per entry | contents of the files, one after the other
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import struct
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from gem_sandbox._removal import remove

_LENGTH = struct.Struct("<Q")
_FILE, _FOLDER, _LINK = "file", "folder", "link"


class Entry(NamedTuple):
    """A file, or with one of the last two, something else."""

    content: bytes = b""
    mode: int = 0o644
    """Permissions."""
    modified: int | None = None
    """Time of the last change, in nanoseconds since 1970; `None` for now."""
    is_folder: bool = False
    target: str | None = None
    """Of a symbolic link: where it points to."""


class DoesNotFit(Exception):
    """There is more than may be taken; the message says what."""


def packed(entries: Mapping[str, Entry]) -> bytes:
    """Entries by their absolute paths, as one piece."""
    return b"".join(_pieces(entries.items()))


def unpacked(data: bytes) -> dict[str, Entry]:
    """The other way.

    Raises:
        ValueError: it is something else. What a sandbox sends can be anything.
    """
    try:
        return dict(_rows(data))
    except (struct.error, LookupError, TypeError, UnicodeError) as error:
        raise ValueError(f"not packed files: {error}") from error


def write(data: bytes) -> None:
    """Write packed entries to their places. What is in the way of one is removed. Raises `OSError`."""
    folders: list[tuple[str, Entry]] = []
    for path, entry in _rows(data):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        _make_way(path, entry)
        if entry.is_folder:
            os.makedirs(path, exist_ok=True)
            folders.append((path, entry))
        elif entry.target is not None:
            os.symlink(entry.target, path)
        else:
            _write_file(path, entry)
    for path, entry in reversed(folders):  # last: a folder may refuse further entries, and has a time of its own
        os.chmod(path, entry.mode)
        _set_time(path, entry)


def read(roots: Iterable[str], left_out: Iterable[str], most: int) -> Iterator[bytes]:
    """The pieces of all entries at or below some paths of the same file system, packed. Pipes and devices are left out.

    Args:
        roots: the paths; those that are not there are skipped.
        left_out: paths that are skipped, with all below them.
        most: bytes.

    Raises:
        DoesNotFit: the files are larger than that together.
    """
    device = os.lstat("/").st_dev
    skipped = {*left_out}
    found: dict[str, Entry] = {}
    size = 0
    for root in filter(os.path.lexists, roots):
        for path in _walk(root, device, skipped):
            entry = _read_entry(path)
            if entry is not None:
                size += len(entry.content) + len(path)
                found[path] = entry
            if size > most:
                raise DoesNotFit(f"there are files of more than {most} bytes")
    yield from _pieces(found.items())


def _pieces(entries: Iterable[tuple[str, Entry]]) -> Iterator[bytes]:
    entries = [*entries]
    table = json.dumps([_row(path, entry) for path, entry in entries]).encode()
    yield _LENGTH.pack(len(table)) + table
    yield from (entry.content for _, entry in entries)


def _row(path: str, entry: Entry) -> list[Any]:
    kind = _FOLDER if entry.is_folder else _FILE if entry.target is None else _LINK
    return [path, kind, entry.mode, entry.modified, len(entry.content), entry.target]


def _rows(data: bytes) -> Iterator[tuple[str, Entry]]:
    (length,) = _LENGTH.unpack_from(data)
    at = _LENGTH.size + length
    for path, kind, mode, modified, size, target in json.loads(data[_LENGTH.size : at]):
        content = data[at : at + size]
        at += size
        yield str(path), Entry(content, int(mode) & 0o7777, modified, kind == _FOLDER, target)


def _make_way(path: str, entry: Entry) -> None:
    if os.path.islink(path) or os.path.isfile(path):
        os.remove(path)
    elif os.path.isdir(path) and not entry.is_folder:
        remove(path)


def _write_file(path: str, entry: Entry) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        rest = memoryview(entry.content)
        while rest:
            rest = rest[os.write(file, rest) :]
        os.fchmod(file, entry.mode)
    finally:
        os.close(file)
    _set_time(path, entry)


def _set_time(path: str, entry: Entry) -> None:
    if entry.modified is not None:
        os.utime(path, ns=(entry.modified, entry.modified))


def _walk(path: str, device: int, skipped: set[str]) -> Iterator[str]:
    """A path and all below it, folders first, on one file system."""
    if path in skipped or os.lstat(path).st_dev != device:
        return
    yield path
    if stat.S_ISDIR(os.lstat(path).st_mode):
        with _opened(path, stat.S_IRWXU):
            for name in sorted(os.listdir(path)):
                yield from _walk(os.path.join(path, name), device, skipped)


def _read_entry(path: str) -> Entry | None:
    about = os.lstat(path)
    mode, modified = stat.S_IMODE(about.st_mode), about.st_mtime_ns
    if stat.S_ISLNK(about.st_mode):
        return Entry(mode=mode, target=os.readlink(path))
    if stat.S_ISDIR(about.st_mode):
        return Entry(mode=mode, modified=modified, is_folder=True)
    if stat.S_ISREG(about.st_mode):
        with _opened(path, stat.S_IRUSR), open(path, "rb") as file:
            return Entry(file.read(), mode, modified)
    return None


@contextlib.contextmanager
def _opened(path: str, needed: int) -> Generator[None]:
    """Allow the owner, who this process is, to look into a file or folder meanwhile."""
    about = os.lstat(path)
    mode = stat.S_IMODE(about.st_mode)
    if mode & needed == needed:
        yield
        return
    os.chmod(path, mode | needed)
    try:
        yield
    finally:
        os.chmod(path, mode)
        os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
