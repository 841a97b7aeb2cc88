"""A graph of pages and links: the bundled encyclopedia, or a file of the same form."""

from __future__ import annotations

import functools
import importlib.resources
import re
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from gem_core.errors import EnvError

_LINK = re.compile(r"\[([^\[\]]+)\]")


@dataclass(frozen=True)
class Page:
    """A page."""

    title: str
    text: str
    """Without the brackets of links."""
    links: tuple[str, ...]
    """Titles of other pages, each once, in the order of the text."""


class Encyclopedia:
    """Pages by their titles.

    Args:
        lines: one page each, `Title: text with [Links]`; empty lines are skipped. A title may be any text without a
            colon, brackets or braces.

    Raises:
        EnvError: a line without a title or text, a title twice, a link to no page or to its own page, or fewer than two
            pages.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self.pages: dict[str, Page] = {}
        for line in filter(None, map(str.strip, lines)):
            page = _page(line)
            if page.title in self.pages:
                raise EnvError(f"two pages have the title {page.title!r}; join them")
            self.pages[page.title] = page
        if len(self.pages) < 2:
            raise EnvError(f"a start and a target need two pages, and there are {len(self.pages)}")
        for page in self.pages.values():
            for link in page.links:
                if link not in self.pages or link == page.title:
                    raise EnvError(f"the page {page.title!r} has a link to {link!r}; a link names another page")

    @functools.cached_property
    def titles(self) -> tuple[str, ...]:
        """All titles, in the order of the file."""
        return tuple(self.pages)

    def distances(self, start: str) -> Mapping[str, int]:
        """The least number of links from a page to each page that can be reached from it (breadth-first search)."""
        found = {start: 0}
        queue = deque([start])
        while queue:
            here = queue.popleft()
            for link in self.pages[here].links:
                if link not in found:
                    found[link] = found[here] + 1
                    queue.append(link)
        return found


def can_be_boxed(title: str) -> bool:
    """Whether a move to this title can be written."""
    return title == title.strip() and bool(title) and not re.search(r"[{}\n]", title)


@functools.lru_cache(maxsize=8)
def encyclopedia(path: str | None) -> Encyclopedia:
    """The pages of a file, or the bundled ones for `None`; read once per process.

    Raises:
        EnvError: the file cannot be read, or see `Encyclopedia`.
    """
    if path is None:
        text = importlib.resources.files("gem_games").joinpath("encyclopedia.txt").read_text(encoding="utf-8")
        return Encyclopedia(text.splitlines())
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise EnvError(f"the pages of {path!r} cannot be read: {error}. Give a text file in UTF-8.") from error
    return Encyclopedia(text.splitlines())


def _page(line: str) -> Page:
    title, _, text = line.partition(": ")
    if not title.strip() or not text.strip() or re.search(r"[\[\]{}<>]", title):
        raise EnvError(f"a line of the pages is 'Title: text with [Links]', and this one is {line!r:.100}")
    return Page(title, _LINK.sub(r"\1", text), tuple(dict.fromkeys(_LINK.findall(text))))
