"""An index: passages and a retriever, built or loaded from a folder."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from gem_core.errors import ToolError
from gem_search._corpus import Corpus, digest_of, read_corpus
from gem_search._messages import Hit
from gem_search._retriever import Ranking, Retriever

_MANIFEST, _BOUNDS = "gem_search.json", "bounds.npy"
_HIT_BYTES = 128
"""Of a hit beside its passage: the names of the fields, the score, and a number in place of an id."""


class _Manifest(msgspec.Struct):
    """Identifies the corpus and the retriever of an index."""

    corpus: str
    """Digest of the file."""
    settings: dict[str, str]
    """Of the retriever."""
    version: int = 1


@dataclass(frozen=True)
class Index:
    """A corpus that can be searched."""

    corpus: Corpus
    retriever: Retriever

    def search(self, queries: Sequence[str], topk: int) -> list[Ranking]:
        """The best passages for each query."""
        return self.retriever.search(queries, topk)

    def size(self, rankings: Sequence[Ranking]) -> int:
        """The bytes that the hits have at most when they are encoded; no passage is read for it."""
        return sum(self.corpus.size(number) + _HIT_BYTES for ranking in rankings for number, _ in ranking)

    def hits(self, rankings: Sequence[Ranking]) -> list[list[Hit]]:
        """The passages of rankings; each is read once."""
        numbers = {number for ranking in rankings for number, _ in ranking}
        documents = {number: self.corpus[number] for number in numbers}
        return [[Hit(documents[number], score) for number, score in ranking] for ranking in rankings]


def open_index(corpus: Path, retriever: Retriever, folder: Path | None) -> Index:
    """Load the index that is in the folder, or build one and save it there.

    Args:
        corpus: a jsonl file, see `Corpus`.
        retriever: an empty one.
        folder: `None` builds the index and keeps it in memory.

    Raises:
        ToolError: the corpus is bad, or the folder has something other than an index of it.
    """
    if folder is None:
        passages = read_corpus(corpus)
        retriever.build(passages.texts())
        return Index(passages, retriever)
    if not _is_empty(folder):
        _check(folder, _Manifest(digest_of(corpus), dict(retriever.settings)), corpus)
    else:
        _build(corpus, retriever, folder)
    return _loaded(corpus, retriever, folder)


def _build(corpus: Path, retriever: Retriever, folder: Path) -> None:
    passages = read_corpus(corpus)
    retriever.build(passages.texts())
    # Written under another name until it is complete, so that a partial one is never taken for an index.
    part = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    try:
        part.mkdir(parents=True)
        retriever.save(part)
        np.save(part / _BOUNDS, passages.bounds)
        manifest = _Manifest(passages.digest, dict(retriever.settings))
        (part / _MANIFEST).write_bytes(msgspec.json.encode(manifest))
        part.replace(folder)
    except OSError as error:
        raise ToolError(f"the index cannot be saved as {folder}: {error}") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _loaded(corpus: Path, retriever: Retriever, folder: Path) -> Index:
    try:
        manifest = _manifest(folder)
        bounds = np.load(folder / _BOUNDS, mmap_mode="r")
        retriever.load(folder)
    except Exception as error:  # libraries raise anything for a damaged file
        raise ToolError(f"the index {folder} cannot be read: {error}. {_REMEDY}") from error
    return Index(Corpus(corpus, bounds, manifest.corpus), retriever)


_REMEDY = "Delete it to build it anew, or name another folder with --index"


def _check(folder: Path, wanted: _Manifest, corpus: Path) -> None:
    try:
        found = _manifest(folder)
    except (OSError, msgspec.MsgspecError) as error:
        raise ToolError(f"{folder} is there, but is no index of this program. Name another folder") from error
    if found.version != wanted.version:
        raise ToolError(f"the index {folder} is of another version of this program. {_REMEDY}")
    if found.corpus != wanted.corpus:
        raise ToolError(f"the index {folder} was built from another corpus than {corpus}, or that changed. {_REMEDY}")
    if found.settings != wanted.settings:
        raise ToolError(f"the index {folder} was built with {found.settings}, not {wanted.settings}. {_REMEDY}")


def _manifest(folder: Path) -> _Manifest:
    return msgspec.json.decode((folder / _MANIFEST).read_bytes(), type=_Manifest)


def _is_empty(folder: Path) -> bool:
    return not folder.exists() or (folder.is_dir() and not any(folder.iterdir()))
