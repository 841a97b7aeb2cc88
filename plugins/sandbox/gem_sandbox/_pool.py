"""The servers of programs: one per settings and process, started by the first call."""

from __future__ import annotations

import os
import tempfile
from functools import partial
from typing import NamedTuple

from gem_sandbox import _backends as backends
from gem_sandbox._errors import SandboxError
from gem_sandbox._memory import socket_bytes
from gem_sandbox._removal import remove
from gem_sandbox.forkserver import THREADS, TUNING, CannotStart, ForkServer, Keeper, keeper, known_keeper
from gem_sandbox.view import search_path, view

_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "USER": "sandbox",
    "PYTHONHASHSEED": "0",
    **THREADS,
    **TUNING,
}


class Settings(NamedTuple):
    """What makes one server different from another."""

    backend: str
    preload: tuple[str, ...]
    concurrency: int


class ProgramServer(ForkServer):
    """The fork server of programs. Raises `SandboxError` where it cannot start."""

    def __init__(self, settings: Settings) -> None:
        # Of the backend without namespaces: the server's, which takes it away unless it is killed.
        self._folder = tempfile.mkdtemp(prefix="gem-sandbox-") if settings.backend == "limits" else None
        try:
            super().__init__(
                partial(backends.command, settings.backend), _ENVIRONMENT, self._message(settings), cwd="/"
            )
        except CannotStart as error:
            raise SandboxError(str(error)) from None

    def end(self) -> None:
        """See `ForkServer`."""
        super().end()
        if self._folder is not None:
            remove(self._folder)

    def _message(self, settings: Settings) -> dict[str, object]:
        return {
            "backend": settings.backend,
            "preload": settings.preload,
            "path": search_path(),
            "folder": self._folder,
            "socket_bytes": socket_bytes(),
            "readable": [path for path in view().of_this_machine if os.path.exists(path)],
        }


def pool(settings: Settings) -> Keeper:
    """This process's; it starts nothing yet."""
    return keeper(settings, partial(ProgramServer, settings), settings.concurrency)


def leave(settings: Settings, user: int) -> None:
    """Say that a user has no more calls to make."""
    if known := known_keeper(settings):
        known.leave(user)
