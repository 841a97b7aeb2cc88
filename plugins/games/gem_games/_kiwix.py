"""Pages of a Kiwix file (ZIM), read by openZIM's libzim."""

from __future__ import annotations

import importlib
import posixpath
import random
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from gem_core.errors import EnvError, MissingExtraError
from gem_core.installation import install_line
from gem_games._encyclopedia import Page, can_be_boxed
from gem_games._page_text import PageText

_TRIES = 1000
"""Entries that are drawn until one is a page."""
_MAX_REDIRECTS = 10


class KiwixFile:
    """The pages of a file. A page is an HTML entry, and links lead to other entries.

    Args:
        name: the file.

    Raises:
        MissingExtraError: libzim is not installed.
        EnvError: the file cannot be read.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        try:
            reader: Any = importlib.import_module("libzim.reader")
        except ModuleNotFoundError as error:
            raise MissingExtraError(
                f"Kiwix files need the module 'libzim', which is not installed. Next: {install_line('kiwix')}"
            ) from error
        try:
            self._archive: Any = reader.Archive(Path(name).expanduser())
        except RuntimeError as error:
            raise EnvError(f"the Kiwix file {name!r} cannot be read: {error}") from error

    def title(self, rng: random.Random) -> str:
        """The title of a page, each as likely as any other. Raises `EnvError` if the file has almost no pages."""
        for _ in range(_TRIES):
            entry = self._archive._get_entry_by_id(rng.randrange(self._archive.all_entry_count))
            if not entry.is_redirect and self._is_page(entry) and self._is_found(entry):
                return entry.title
        raise EnvError(f"no page was found in {_TRIES} draws from the Kiwix file {self.name!r}")

    def page(self, title: str) -> Page:
        """The page with this title. Raises `EnvError` without one."""
        try:
            entry = _followed(self._archive.get_entry_by_title(title))
        except KeyError as error:
            raise EnvError(f"the Kiwix file {self.name!r} has no page {title!r}") from error
        read = PageText(bytes(entry.get_item().content).decode(errors="replace"))
        titles = dict.fromkeys(self._title_of(target, entry.path) for target in read.targets)
        links = tuple(one for one in titles if one is not None and one != entry.title)
        return Page(entry.title, read.text, links)

    def _title_of(self, target: str, path: str) -> str | None:
        """The title of the page that a link leads to, or `None` where it leads to no page of this file."""
        try:
            parts = urlsplit(target)
        except ValueError:
            return None
        if parts.scheme or parts.netloc or not parts.path:
            return None
        place = posixpath.normpath(posixpath.join(posixpath.dirname(path), unquote(parts.path))).lstrip("/")
        if not self._archive.has_entry_by_path(place):
            return None
        entry = _followed(self._archive.get_entry_by_path(place))
        return entry.title if self._is_page(entry) and self._is_found(entry) else None

    def _is_page(self, entry: Any) -> bool:
        return entry.get_item().mimetype.startswith("text/html") and can_be_boxed(entry.title)

    def _is_found(self, entry: Any) -> bool:
        """Whether the title of an entry leads to that entry: another one may have the same title."""
        if not self._archive.has_entry_by_title(entry.title):
            return False
        return _followed(self._archive.get_entry_by_title(entry.title)).path == entry.path


def _followed(entry: Any) -> Any:
    """The entry that a redirect leads to. Raises `EnvError` where redirects lead in a circle."""
    for _ in range(_MAX_REDIRECTS):
        if not entry.is_redirect:
            return entry
        entry = entry.get_redirect_entry()
    raise EnvError(f"redirects lead from {entry.path!r} to no page; the file is damaged")
