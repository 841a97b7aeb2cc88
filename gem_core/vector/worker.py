"""What runs in a worker process: members, a thread that sends what they answer, and nothing else."""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import pickle
import queue
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from gem_core.env import Env
from gem_core.vector.calls import Call, Failure, Outcome, failure_of
from gem_core.vector.member import Member

HEADER = struct.Struct("<Q")
"""Length of the message that follows."""
READY = "ready"


class Home(NamedTuple):
    """One member, as a worker builds it."""

    env_id: str
    stream: int
    autoreset: bool


@dataclass(frozen=True)
class Setup:
    """What a worker needs to know."""

    homes: Mapping[int, Home]
    builders: Mapping[str, bytes]
    """Pickled `Callable[[], Env]` per environment id."""
    plugins: tuple[str, ...]
    """Plugins that decide in the vector's process, and so do here."""
    configs: tuple[Mapping[str, Any], ...]
    """Settings that the plugins there were told."""

    def members(self) -> dict[int, Member]:
        """The members that live here, none of them built yet."""
        from gem_core.plugins import manager

        manager.enable(*self.plugins)
        for config in self.configs:
            manager.configure(config)
        build: dict[str, Callable[[], Env]] = {key: pickle.loads(data) for key, data in self.builders.items()}
        return {
            index: Member(index, build[home.env_id], home.stream, autoreset=home.autoreset)
            for index, home in self.homes.items()
        }


class Marker:
    """Shared memory that says which member is at work since when, even after the worker was killed.

    Args:
        file: a file descriptor of its own, shared by both sides.
    """

    _LAYOUT = struct.Struct("<dq")
    _IDLE = -1

    def __init__(self, file: int) -> None:
        os.ftruncate(file, self._LAYOUT.size)
        self._memory = mmap.mmap(file, self._LAYOUT.size)

    def set(self, index: int) -> None:
        """This member is at work from now on."""
        self._LAYOUT.pack_into(self._memory, 0, time.monotonic(), index)

    def clear(self) -> None:
        """Nobody is."""
        self.set(self._IDLE)

    def get(self) -> tuple[int, float] | None:
        """Who is at work, and since when."""
        since, index = self._LAYOUT.unpack_from(self._memory)
        return None if index == self._IDLE else (index, since)


def main() -> None:
    """Serve the vector whose file descriptors the command line names."""
    connection, lifeline, marker = json.loads(sys.argv[2])
    for file in (connection, lifeline, marker):
        os.set_inheritable(file, False)
    _die_with_the_vector(lifeline)
    with socket.socket(fileno=connection) as stream:
        _serve(stream, Marker(marker))


def _die_with_the_vector(lifeline: int) -> None:
    # The kernel sends SIGIO, which ends every process of this group, when the other end of the pipe is closed: by the
    # vector, or by its death, however hard. A thread could not, while an environment keeps Python's lock.
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC)


def _serve(stream: socket.socket, marker: Marker) -> None:
    marker.clear()
    messages = _messages(stream)
    try:
        members = pickle.loads(next(messages)).members()
    except (Exception, SystemExit) as error:
        _send(stream, pickle.dumps(failure_of(error)))
        return
    _send(stream, pickle.dumps(READY))
    outbox: queue.SimpleQueue[tuple[int, Outcome] | None] = queue.SimpleQueue()
    sender = threading.Thread(target=_send_all, args=(stream, outbox), daemon=True)
    sender.start()

    def emit(index: int, outcome: Outcome) -> None:
        outbox.put((index, outcome))
        marker.set(index)  # it may be at its next episode's opening from here on

    for message in messages:
        calls: Mapping[int, Call] | None = pickle.loads(message)
        if calls is None:
            break
        for index, call in calls.items():
            marker.set(index)
            members[index].perform(call, emit)
        marker.clear()
    for member in members.values():
        member.close()
    outbox.put(None)
    sender.join()


def _messages(stream: socket.socket) -> Iterator[bytes]:
    with stream.makefile("rb") as file:
        while header := file.read(HEADER.size):
            yield file.read(*HEADER.unpack(header))


def _send_all(stream: socket.socket, outbox: queue.SimpleQueue[tuple[int, Outcome] | None]) -> None:
    # While quick environments compute, this thread waits for Python's lock, so their outcomes go out together; while
    # a slow one waits for something, they go out at once.
    open_ = True
    while open_:
        batch = [outbox.get()]
        while not outbox.empty():
            batch.append(outbox.get())
        open_ = batch[-1] is not None
        _send(stream, _pickled([item for item in batch if item is not None]))


def _pickled(batch: list[tuple[int, Outcome]]) -> bytes:
    try:
        return pickle.dumps(batch, pickle.HIGHEST_PROTOCOL)
    except Exception:
        return pickle.dumps([(index, _sendable(outcome)) for index, outcome in batch], pickle.HIGHEST_PROTOCOL)


def _sendable(outcome: Outcome) -> Outcome:
    try:
        pickle.dumps(outcome)
    except Exception as error:
        return Failure(f"EnvFailure: its info cannot be sent between processes: {type(error).__name__}: {error}")
    return outcome


def _send(stream: socket.socket, message: bytes) -> None:
    stream.sendall(HEADER.pack(len(message)) + message)
