"""Retrieval by meaning: a sentence-transformers model and an exact FAISS index."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gem_core.errors import ToolError
from gem_search._encoder import encoder_folder
from gem_search._retriever import Ranking

# No types, and too large to install wherever types are checked.
faiss: Any = importlib.import_module("faiss")
sentence_transformers: Any = importlib.import_module("sentence_transformers")

_FILE = "vectors.faiss"


class Dense:
    """Compares the embeddings of query and passage by their cosine.

    Args:
        model: `ENCODER`, or the name or folder of another sentence-transformers model.
        query_prompt, passage_prompt: text that the model was trained to see before each; `None` takes the model's own.
        batch_size: texts to encode at once.

    Raises:
        MissingExtraError: `ENCODER` is not installed.
        ToolError: the model cannot be loaded.
    """

    def __init__(
        self, model: str, *, query_prompt: str | None = None, passage_prompt: str | None = None, batch_size: int = 64
    ) -> None:
        folder = encoder_folder(model)
        try:
            self._model: Any = sentence_transformers.SentenceTransformer(folder)
        except Exception as error:  # the library, the hub or the disk may raise anything
            raise ToolError(f"the model {model!r} cannot be loaded: {error}") from error
        self._prompts = (query_prompt, passage_prompt)
        self._batch_size = batch_size
        self._index: Any = None
        prompts = {"query_prompt": query_prompt, "passage_prompt": passage_prompt}
        given = {name: prompt for name, prompt in prompts.items() if prompt is not None}
        self.settings: Mapping[str, str] = {"retriever": "dense", "model": model, **given}

    def build(self, texts: Iterable[str]) -> None:
        """See `Retriever`. Holds every embedding in memory: 4 bytes per dimension and passage."""
        for part in _batches(texts, 100 * self._batch_size):
            vectors = self._embedded(self._model.encode_document, part, self._prompts[1])
            if self._index is None:
                self._index = faiss.IndexFlatIP(vectors.shape[1])
            self._index.add(vectors)

    def save(self, folder: Path) -> None:
        """See `Retriever`."""
        faiss.write_index(self._index, str(folder / _FILE))

    def load(self, folder: Path) -> None:
        """See `Retriever`."""
        self._index = faiss.read_index(str(folder / _FILE), faiss.IO_FLAG_MMAP)

    def search(self, queries: Sequence[str], topk: int) -> list[Ranking]:
        """See `Retriever`."""
        vectors = self._embedded(self._model.encode_query, list(queries), self._prompts[0])
        found = self._index.search(vectors, min(topk, self._index.ntotal))
        scores, numbers = (array.tolist() for array in found)
        return [list(zip(*pair, strict=True)) for pair in zip(numbers, scores, strict=True)]

    def _embedded(self, encode: Any, texts: list[str], prompt: str | None) -> NDArray[np.float32]:
        vectors = encode(
            texts, prompt=prompt, batch_size=self._batch_size, normalize_embeddings=True, show_progress_bar=False
        )
        return np.ascontiguousarray(vectors, np.float32)


def _batches(texts: Iterable[str], size: int) -> Iterator[list[str]]:
    remaining = iter(texts)
    while part := list(itertools.islice(remaining, size)):
        yield part
