"""A search server inside this process, for examples and tests."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from pathlib import Path

from gem_search._corpus import BUNDLED
from gem_search.command import extra


@contextlib.contextmanager
def local_server(corpus: Path = BUNDLED) -> Generator[str]:
    """Serve a small corpus with BM25 from a thread of this process, for the length of a block.

    Args:
        corpus: a jsonl file, see plugins/search/README.md; by default the bundled one.

    Yields:
        The address, for `SearchTool`. Environments in other processes of this machine reach it too.

    Raises:
        MissingExtraError: a required module is not installed.
    """
    with extra("search-server"):
        from gem_search._bm25 import Bm25
        from gem_search._index import open_index
        from gem_search._server import SearchServer
    with SearchServer(open_index(corpus, Bm25(), None)).in_background() as url:
        yield url
