"""Search by shared words: BM25 for English."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

# Neither has types.
bm25s: Any = importlib.import_module("bm25s")
stemmer: Any = importlib.import_module("Stemmer")

_WORD = re.compile(r"\w+")


class Index:
    """BM25 over word stems, with the parameters of Anserini, k1=0.9 and b=0.4, which WebShop's own search uses.

    Args:
        texts: at least one.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._stem: Callable[[list[str]], list[str]] = stemmer.Stemmer("english").stemWords
        self._stopwords = frozenset[str](bm25s.stopwords.STOPWORDS_EN)
        vocabulary: dict[str, int] = {"": 0}
        numbers = [[vocabulary.setdefault(stem, len(vocabulary)) for stem in self._stems(text)] for text in texts]
        self._index: Any = bm25s.BM25(method="lucene", k1=0.9, b=0.4)
        self._index.index((numbers, vocabulary), show_progress=False)

    def search(self, query: str, count: int) -> list[int]:
        """The numbers of the texts that fit best; texts without a word of the query are not found."""
        known = self._index.get_tokens_ids([*dict.fromkeys(self._stems(query))])
        if not known:
            return []
        scores: np.ndarray[Any, np.dtype[np.float32]] = self._index.get_scores_from_ids(known)
        # The sort is stable, so that texts of one score keep their order.
        best = np.argsort(-scores, kind="stable")[:count]
        return [int(number) for number in best if scores[number] > 0]

    def _stems(self, text: str) -> list[str]:
        return self._stem([word for word in _WORD.findall(text.lower()) if word not in self._stopwords])
