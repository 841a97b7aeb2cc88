"""The passages. They stay in their file; only the offset of each is in memory."""

from __future__ import annotations

import hashlib
import os
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from gem_core.errors import ToolError
from gem_search._messages import Document

BUNDLED = Path(__file__).with_name("corpus.jsonl")
_BLOCK = 2**20


class _Row(msgspec.Struct):
    contents: str | None = None
    title: str | None = None
    text: str | None = None
    id: str | int | None = None

    @property
    def whole(self) -> str:
        """The text, below a line with the title if there is one."""
        if self.contents is not None:
            return self.contents
        return "\n".join(part for part in (self.title, self.text) if part)


_decoder = msgspec.json.Decoder(_Row)


class Corpus:
    """Passages of a jsonl file, by their number from 0.

    A line is an object with `contents`, whose first line is the title, or with `text` and optionally `title`. `id` is
    optional; the default is the passage's number. Blank lines are skipped.

    Args:
        path: the file. It must not change while it is used.
        bounds: the offset of each passage in bytes, and the end of the last one.
        digest: of the whole file.
    """

    def __init__(self, path: Path, bounds: NDArray[np.uint64], digest: str) -> None:
        self.path = path
        self.bounds = bounds
        self._places = memoryview(bounds.data)  # its items are Python's own numbers
        self.digest = digest
        self._file = path.open("rb")

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __getitem__(self, number: int) -> Document:
        """A passage; safe in any thread."""
        row = _decoder.decode(os.pread(self._file.fileno(), self.size(number), self._places[number]))
        return Document(row.whole, str(number) if row.id is None else row.id)

    def size(self, number: int) -> int:
        """Bytes of a passage's line: its text and id have no more in any format."""
        return self._places[number + 1] - self._places[number]

    def texts(self) -> Iterator[str]:
        """All passages, one at a time."""
        with self.path.open("rb") as file:
            for line in file:
                if not line.isspace():
                    yield _decoder.decode(line).whole


def read_corpus(path: Path) -> Corpus:
    """Read a file once from end to end.

    Raises:
        ToolError: the file cannot be read, has no passage, or has an invalid line.
    """
    bounds, digest, end = array("Q"), _hash(), 0
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                digest.update(line)
                if not line.isspace():
                    _check(line, f"{path}, line {number}")
                    bounds.append(end)
                end += len(line)
    except OSError as error:
        raise _unreadable(path, error) from error
    if not bounds:
        raise ToolError(f"{path} has no passage. A line looks like {_EXAMPLE}")
    bounds.append(end)
    return Corpus(path, np.frombuffer(bounds, np.uint64), digest.hexdigest())


def digest_of(path: Path) -> str:
    """The digest of the file. Raises `ToolError` if it cannot be read."""
    digest = _hash()
    try:
        with path.open("rb") as file:
            for block in _blocks(file):
                digest.update(block)
    except OSError as error:
        raise _unreadable(path, error) from error
    return digest.hexdigest()


_EXAMPLE = '{"id": "7", "contents": "Title\\nText"} or {"title": "Title", "text": "Text"}'


def _check(line: bytes, where: str) -> None:
    try:
        whole = _decoder.decode(line).whole
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise ToolError(f"{where}: {error}. A line looks like {_EXAMPLE}") from error
    if not whole.strip():
        raise ToolError(f"{where}: there is no text. A line looks like {_EXAMPLE}")


def _unreadable(path: Path, error: OSError) -> ToolError:
    return ToolError(f"the corpus {path} cannot be read: {error.strerror or error}")


def _hash() -> Any:
    return hashlib.blake2b(digest_size=16)


def _blocks(file: Any) -> Iterable[bytes]:
    return iter(lambda: file.read(_BLOCK), b"")
