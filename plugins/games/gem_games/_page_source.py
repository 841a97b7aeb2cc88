"""Where WikiGame's pages come from: a text file, a Kiwix file, or a wiki."""

from __future__ import annotations

import functools
import random
from typing import Protocol

from gem_core.errors import EnvError
from gem_games._encyclopedia import Page, encyclopedia
from gem_games._kiwix import KiwixFile
from gem_games._mediawiki import MediaWiki

MAX_WALK_LENGTH = 5
"""Most links between a start and its target if the distances are unknown."""
_TRIES = 20


class PageSource(Protocol):
    """Pages that link to each other."""

    def page(self, title: str) -> Page:
        """The page with this title, or the page that a title redirects to. Raises `EnvError` without one."""
        ...

    def drawn(self, rng: random.Random, most: int) -> tuple[str, str]:
        """Two different titles, and a way of at most `most` links leads from the first to the second.

        Raises:
            EnvError: there are none.
        """
        ...

    def links_between(self, start: str, target: str) -> int | None:
        """The least number of links from a page to another; `None` if no way leads there.

        Raises:
            NotImplementedError: the distances are unknown.
        """
        ...


class _Distances:
    """A graph that is small enough to know all distances."""

    def __init__(self, pages: str | None) -> None:
        self._pages = pages
        self._book = encyclopedia(pages)

    def page(self, title: str) -> Page:
        return self._book.pages[title]

    def drawn(self, rng: random.Random, most: int) -> tuple[str, str]:
        titles = self._book.titles
        for start in rng.sample(titles, len(titles)):
            near = self._book.distances(start)
            if goals := [title for title in titles if 0 < near.get(title, 0) <= most]:
                return start, rng.choice(goals)
        raise EnvError(f"no page of {self._pages!r} leads to another one; give pages with links")

    def links_between(self, start: str, target: str) -> int | None:
        return self._book.distances(start).get(target)


class _Walks:
    """A graph that is too large: the target is where a walk ends."""

    def __init__(self, library: KiwixFile | MediaWiki) -> None:
        self._library = library
        self.page = functools.lru_cache(maxsize=512)(library.page)

    def drawn(self, rng: random.Random, most: int) -> tuple[str, str]:
        for _ in range(_TRIES):
            way = [self.page(self._library.title(rng)).title]
            for _ in range(min(most, MAX_WALK_LENGTH)):
                links = [title for title in self.page(way[-1]).links if title not in way]
                after = self.page(rng.choice(links)).title if links else way[-1]
                if after in way:  # a redirect may lead back
                    break
                way.append(after)
            if len(way) > 1:
                return way[0], way[-1]
        raise EnvError(f"no page with links to others was found in {_TRIES} draws from {self._library.name}")

    def links_between(self, start: str, target: str) -> int | None:
        raise NotImplementedError(f"{self._library.name} is too large to know all distances")


@functools.lru_cache(maxsize=8)
def page_source(pages: str | None) -> PageSource:
    """The pages that a setting names; opened once per process.

    Args:
        pages: `None` for the bundled encyclopedia, the address of a wiki's `api.php`, a file that ends in `.zim`, or a
            text file.

    Raises:
        EnvError: a file that cannot be read.
        MissingExtraError: the library for Kiwix files is not installed.
    """
    if pages is not None and pages.startswith(("http://", "https://")):
        return _Walks(MediaWiki(pages))
    return _Walks(KiwixFile(pages)) if pages is not None and pages.endswith(".zim") else _Distances(pages)
