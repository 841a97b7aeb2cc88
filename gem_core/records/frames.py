"""A file of frames that is only appended to: whatever kills the writer, the frames before it are whole.

file   = MAGIC frame*
frame  = <size of head: u32> <size of body: u32> <crc32 of head and body: u32> head body      (little-endian)
head   = a msgpack map, with `kind`
body   = bytes, of what `kind` says
"""

from __future__ import annotations

import struct
import threading
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

MAGIC = b"GEMREC3\n"
_SIZES = struct.Struct("<III")


class Frame(NamedTuple):
    """A frame whose body is still on disk."""

    head: dict[str, Any]
    start: int
    """The position of the body in the file."""
    size: int
    """The size of the body in bytes."""


class FrameWriter:
    """Appends frames to a file of its own. Safe to use from several threads.

    Args:
        path: a new file; its folder is made.

    Raises:
        OSError: the file exists, or cannot be written.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("xb", buffering=0)
        self._lock = threading.Lock()
        self._append(MAGIC)

    def write(self, head: Mapping[str, Any], body: bytes = b"") -> None:
        """Append a frame.

        Raises:
            OSError: it cannot be written. The file is as it was before.
        """
        encoded = msgspec.msgpack.encode(head)
        crc = zlib.crc32(body, zlib.crc32(encoded))
        self._append(_SIZES.pack(len(encoded), len(body), crc) + encoded + body)

    def _append(self, written: bytes) -> None:
        with self._lock:
            end, rest = self._file.tell(), memoryview(written)
            try:
                while rest:  # a disk that is nearly full takes a part
                    rest = rest[self._file.write(rest) :]
            except OSError:
                self._file.truncate(end)
                self._file.seek(end)
                raise

    def close(self) -> None:
        """Close the file. Safe to call twice."""
        self._file.close()


def read_frames(path: Path, start: int = 0) -> Iterator[Frame]:
    """The whole frames of a file from a position on, up to its end or the first one that is damaged or unfinished.

    Args:
        path: the file.
        start: where a frame starts: the end of the body of the frame before; 0 for the first.

    Raises:
        ValueError: it is no such file.
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        if start == 0:
            found = file.read(len(MAGIC))
            if found != MAGIC:
                if MAGIC.startswith(found):
                    return  # killed at once
                raise ValueError(f"{path} does not start with {MAGIC!r}")
        else:
            file.seek(start)
        while len(sizes := file.read(_SIZES.size)) == _SIZES.size:
            head_size, body_size, crc = _SIZES.unpack(sizes)
            head, place = file.read(head_size), file.tell()
            body = file.read(body_size)
            if len(body) < body_size or zlib.crc32(body, zlib.crc32(head)) != crc:
                return
            yield Frame(msgspec.msgpack.decode(head), place, body_size)


def read_body(path: Path, frame: Frame) -> bytes:
    """The body of a frame. Raises `OSError` if it cannot be read."""
    with path.open("rb") as file:
        file.seek(frame.start)
        return file.read(frame.size)
