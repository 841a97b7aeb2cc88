"""Watching a constructor do what it must not."""

from __future__ import annotations

import multiprocessing.process
import os
import socket
import subprocess
import threading
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from typing import Any, NoReturn
from unittest import mock

_NETWORK, _PROCESS = "reached for the network", "started a process"
_FORBIDDEN: tuple[tuple[Any, str, str], ...] = (
    (socket.socket, "connect", _NETWORK),
    (socket.socket, "connect_ex", _NETWORK),
    (socket, "getaddrinfo", _NETWORK),
    (subprocess.Popen, "__init__", _PROCESS),
    (multiprocessing.process.BaseProcess, "start", _PROCESS),
    (os, "fork", _PROCESS),
    (os, "posix_spawn", _PROCESS),
    (os, "system", _PROCESS),
)


@contextmanager
def watched() -> Generator[list[str], None, None]:
    """Refuse connections and new processes, and hand out a list of what was tried.

    Threads cannot be refused without breaking whoever waits for one, so those left behind are named afterwards.
    """
    deeds: list[str] = []
    before = set(threading.enumerate())
    with ExitStack() as stack:
        for owner, name, deed in _FORBIDDEN:
            if hasattr(owner, name):
                call = f"{owner.__name__}.{name}"
                stack.enter_context(mock.patch.object(owner, name, _refuse(f"{deed} ({call})", deeds)))
        yield deeds
    started = [thread for thread in threading.enumerate() if thread not in before]
    deeds.extend(f"started the thread {thread.name!r}" for thread in started)


def _refuse(deed: str, deeds: list[str]) -> Callable[..., NoReturn]:
    def refuse(*_: object, **__: object) -> NoReturn:
        # Noted as well as raised: a constructor that falls back to something else has tried all the same.
        deeds.append(deed)
        raise OSError(f"refused by gem_core.testing: the constructor {deed}")

    return refuse
