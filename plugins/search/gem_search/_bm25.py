"""Retrieval by shared words: BM25 for English."""

from __future__ import annotations

import importlib
import re
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gem_search._retriever import Ranking

# Neither has types.
bm25s: Any = importlib.import_module("bm25s")
stemmer: Any = importlib.import_module("Stemmer")

_WORD = re.compile(r"\w+")


class Bm25:
    """Lucene's BM25 with the default parameters of bm25s, over word stems without stop words."""

    settings: Mapping[str, str] = {"retriever": "bm25", "language": "english"}

    def __init__(self) -> None:
        self._index: Any = bm25s.BM25()
        self._stem: Callable[[list[str]], list[str]] = stemmer.Stemmer("english").stemWords
        self._stopwords = frozenset[str](bm25s.stopwords.STOPWORDS_EN)

    def build(self, texts: Iterable[str]) -> None:
        """See `Retriever`."""
        words = _Words(self._stem, self._stopwords)
        # Arrays take an eighth of the memory of lists.
        passages = [array("i", words.numbers(text)) for text in texts]
        self._index.index((passages, words.vocabulary), show_progress=False)

    def save(self, folder: Path) -> None:
        """See `Retriever`."""
        self._index.save(folder, show_progress=False)

    def load(self, folder: Path) -> None:
        """See `Retriever`."""
        self._index = bm25s.BM25.load(folder, mmap=True)

    def search(self, queries: Sequence[str], topk: int) -> list[Ranking]:
        """See `Retriever`. Passages without a word of the query are not found."""
        return [self._ranking(query, topk) for query in queries]

    def _ranking(self, query: str, topk: int) -> Ranking:
        stems = self._stem([word for word in _words(query) if word not in self._stopwords])
        known = self._index.get_tokens_ids(stems)
        if not known:
            return []
        scores: np.ndarray[Any, np.dtype[np.float32]] = self._index.get_scores_from_ids(known)
        topk = min(topk, len(scores))
        best = np.argpartition(scores, -topk)[-topk:]
        # The sort is stable, so that passages of one score keep the order of the corpus.
        best = np.sort(best)
        best = best[np.argsort(-scores[best], kind="stable")]
        return [(int(number), float(scores[number])) for number in best if scores[number] > 0]


class _Words(dict[str, int]):
    """The number of each word's stem, assigned in order of appearance; -1 for stop words."""

    def __init__(self, stem: Callable[[list[str]], list[str]], stopwords: frozenset[str]) -> None:
        super().__init__(dict.fromkeys(stopwords, -1))
        self._stem = stem
        self.vocabulary = {"": 0}
        """The numbers by stem; the empty one is for corpora without words."""

    def numbers(self, text: str) -> list[int]:
        """The words of a text."""
        return [number for number in map(self.__getitem__, _words(text)) if number >= 0]

    def __missing__(self, word: str) -> int:
        (stem,) = self._stem([word])
        self[word] = self.vocabulary.setdefault(stem, len(self.vocabulary))
        return self[word]


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())
