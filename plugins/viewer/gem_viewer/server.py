"""The local server: the page, and what it asks for. It follows runs that are still being written.

It listens on the loopback interface only. Every request needs the token of the address that the command prints, and a
host name of this machine, so that other users' programs and other sites' pages get nothing.
"""

from __future__ import annotations

import hmac
import importlib.util
import secrets
import socket
import threading
import webbrowser
import zlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from gem_core.cli.terminal import say
from gem_core.errors import GemError, MissingExtraError
from gem_viewer.columns import columns
from gem_viewer.errors import ViewError
from gem_viewer.page import described, names_of, served_page
from gem_viewer.shards import BLOCK, TokenTable, as_json, shard

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

    from gem_core.records import Records

_LEVEL = 1  # of compression: the bytes stay on this machine
_HOSTS = ["127.0.0.1", "localhost"]


def check_extra() -> None:
    """Raises `MissingExtraError` where the extra `view` is not installed."""
    missing = [name for name in ("starlette", "uvicorn") if importlib.util.find_spec(name) is None]
    if missing:
        needed = f"the viewer's server needs {' and '.join(missing)}"
        raise MissingExtraError(f'{needed}. Run: pip install "gem-core[view]". --export FILE.html needs neither')


class Library:
    """The runs that the server shows, and what it has sent of them. Threads may call it.

    Args:
        opened: the runs.
    """

    def __init__(self, opened: Sequence[Records]) -> None:
        self._opened = list(opened)
        self._names = names_of(opened)
        self._tables = [TokenTable(records.texts) for records in opened]
        self._updates = [[one.update for one in records.summaries] for records in opened]
        """The update of each episode, as the page knows it."""
        self._lock = threading.Lock()

    def runs(self) -> list[dict[str, Any]]:
        """All runs with the columns of all their episodes."""
        with self._lock:
            self._refresh()
            pairs = zip(self._opened, self._names, strict=True)
            return [{**described(records, name), "columns": columns(records.summaries)} for records, name in pairs]

    def news(self, counts: Sequence[int]) -> list[dict[str, Any]]:
        """What has come since.

        Args:
            counts: how many episodes of each run the page has.

        Returns:
            For each run its description, the columns of the other episodes, and in `updates` the index and the update
            of each episode that was trained on since it ended.
        """
        with self._lock:
            self._refresh()
            news: list[dict[str, Any]] = []
            for records, name, count in zip(self._opened, self._names, counts, strict=True):
                later = records.summaries[count:]
                updates = [[index, one.update] for index, one in enumerate(records.summaries[:count]) if one.update is not None]
                news.append({**described(records, name), "columns": columns(later), "updates": updates})
            return news

    def details(self, run: int, block: int) -> list[Any]:
        """The details of a block of episodes."""

    def tokens(self, run: int, index: int) -> bytes:
        """The token arrays of an episode."""

    def table(self, run: int, start: int) -> dict[str, list[Any]]:
        """The run's table of tokens from this place on."""
        with self._lock:
            return self._tables[run].entries(start)

    def _refresh(self) -> None:
        for records in self._opened:
            records.refresh()
