"""Watching what a constructor does: connections, processes and threads."""

from __future__ import annotations

import gc
import multiprocessing.process
import os
import socket
import subprocess
import threading
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from typing import Any
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


class _Watch:
    """What the thread that made the watch does, and the threads that it starts."""

    def __init__(self) -> None:
        self.deeds: list[str] = []
        self._threads = {threading.current_thread()}

    def refusing(self, original: Callable[..., Any], deed: str) -> Callable[..., Any]:
        """The function, refused to the watched threads; all other threads call the original."""

        def refuse(*arguments: Any, **named: Any) -> Any:
            if threading.current_thread() not in self._threads:
                return original(*arguments, **named)
            # Noted as well as raised: a constructor that catches the error has still broken its promise.
            self.deeds.append(deed)
            raise OSError(f"refused by gem_testing: the constructor {deed}")

        return refuse

    def noting_threads(self, original: Callable[..., Any]) -> Callable[..., Any]:
        """`Thread.start`, which notes the threads that a watched thread starts."""

        def start(thread: threading.Thread) -> None:
            # Noted but not refused: code that waits for a thread which never runs would wait forever.
            if threading.current_thread() in self._threads:
                self.deeds.append(f"started the thread {thread.name!r}")
                self._threads.add(thread)
            original(thread)

        return start


@contextmanager
def without_collection() -> Generator[None]:
    """Keep the garbage collector from running in this thread, where it would run finalizers of others' objects."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def watched() -> Generator[list[str]]:
    """Refuse connections and processes to this thread, note the threads that it starts, and give the list of both.

    Calls of other threads are none of the constructor's doing: they work as usual and are not noted. The same goes for
    finalizers of objects that the constructor does not know, which the garbage collector would run in this thread.
    """
    watch = _Watch()
    with ExitStack() as stack:
        stack.enter_context(without_collection())
        for owner, name, deed in _FORBIDDEN:
            if hasattr(owner, name):
                refusing = watch.refusing(getattr(owner, name), f"{deed} ({owner.__name__}.{name})")
                stack.enter_context(mock.patch.object(owner, name, refusing))
        stack.enter_context(mock.patch.object(threading.Thread, "start", watch.noting_threads(threading.Thread.start)))
        yield watch.deeds
