"""A file of frames that is only appended to. Whatever kills the writer, the frames before are whole.

    file    = MAGIC frame*
    frame   = header head body
    header  = size of head, crc32 of head, size of body, crc32 of body: u32 each, little-endian
    head    = a msgpack map with `kind`
    body    = bytes; `kind` says of what

Readers skip kinds that they do not know. Another layout of frames would have another MAGIC.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

MAGIC = b"GEMREC4\n"
_HEADER = struct.Struct("<IIII")


class Body(NamedTuple):
    """The body of a frame, which is still on disk."""

    start: int
    """Its position in the file."""
    size: int
    """Its size in bytes."""
    crc: int
    """Its checksum."""

    @property
    def end(self) -> int:
        """The position after it."""
        return self.start + self.size


class Frame(NamedTuple):
    """A frame as it stands in the file."""

    head: bytes
    """Encoded, with the right checksum; see `_heads.read_head`."""
    body: Body


class FrameWriter:
    """Appends frames to a new file. One thread at a time.

    Args:
        path: the file; its folder is made.

    Raises:
        OSError: the file exists, or cannot be written.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("xb", buffering=0)
        self._append(MAGIC)

    def write(self, head: Mapping[str, Any], body: bytes = b"") -> None:
        """Append a frame, or leave the file as it was.

        Raises:
            OSError: it cannot be written.
            ValueError: the file is closed, or the body has 4 GiB or more.
        """
        encoded = msgspec.msgpack.encode(head)
        if len(body) >= 1 << 32:
            raise ValueError(f"a record of {len(body)} bytes is too large")
        self._append(_HEADER.pack(len(encoded), zlib.crc32(encoded), len(body), zlib.crc32(body)) + encoded + body)

    def _append(self, written: bytes) -> None:
        end, rest = self._file.tell(), memoryview(written)
        try:
            while rest:  # a disk that is nearly full takes a part
                rest = rest[self._file.write(rest) :]
        except BaseException:  # Ctrl-C, too
            self._file.truncate(end)
            self._file.seek(end)
            raise

    def close(self) -> None:
        """Close the file. Safe to call twice."""
        self._file.close()


class FrameReader:
    """Reads the frames of a file that may still grow.

    Args:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.damaged = 0
        """Frames whose head does not match its checksum."""
        self.rest = 0
        """Bytes after the last whole frame, which is being written or was cut off."""
        self._end = 0

    def frames(self) -> Iterator[Frame]:
        """The whole frames that were appended since the last call.

        Raises:
            ValueError: it is no such file.
            OSError: it cannot be read.
        """
        with self.path.open("rb") as file:
            size = file.seek(0, 2)
            if not self._end:
                file.seek(0)
                _check_magic(file.read(len(MAGIC)), self.path)
                self._end = min(len(MAGIC), size)
            while self._end + _HEADER.size <= size:
                file.seek(self._end)
                head_size, head_crc, body_size, body_crc = _HEADER.unpack(file.read(_HEADER.size))
                start = self._end + _HEADER.size + head_size
                if start + body_size > size:
                    break
                head = file.read(head_size)
                self._end = start + body_size
                if zlib.crc32(head) == head_crc:
                    yield Frame(head, Body(start, body_size, body_crc))
                else:
                    self.damaged += 1
            self.rest = max(0, size - self._end)

    def read(self, body: Body) -> bytes:
        """The bytes of a body.

        Raises:
            ValueError: it is damaged.
            OSError: it cannot be read.
        """
        found = self.part(body, 0, body.size)
        if zlib.crc32(found) != body.crc:
            raise ValueError(f"the record at byte {body.start} does not match its checksum")
        return found

    def part(self, body: Body, start: int, size: int) -> bytes:
        """Bytes of a body, unchecked. Raises `OSError` if they cannot be read."""
        with self.path.open("rb") as file:
            file.seek(body.start + start)
            return file.read(size)


def _check_magic(found: bytes, path: Path) -> None:
    if MAGIC.startswith(found):  # maybe killed at once
        return
    if found.startswith(MAGIC[:6]):
        raise ValueError(f"{path.name} is of another version; read it with the release of gem-core that wrote it")
    raise ValueError(f"{path.name} is no file of records: it does not start with {MAGIC!r}")
