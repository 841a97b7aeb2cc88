"""What runs in a worker process: environments, a thread that sends what they answer, and nothing else."""

from __future__ import annotations

import contextlib
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
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, TypeAlias

from gem_core.env import Env
from gem_core.vector.calls import Call, Failure, Outcome, Replay, Transition, failure_of, new_transition
from gem_core.vector.hosted import HostedEnv

HEADER = struct.Struct("<Q")
"""Length of the message that follows."""
READY = "ready"
Outbox: TypeAlias = "queue.SimpleQueue[tuple[int, Outcome] | threading.Event | None]"
"""Outcomes to send, events to set once those before them were sent, and `None` at the end."""


class Home(NamedTuple):
    """One environment, as a worker builds it."""

    env_id: str
    autoreset: bool


@dataclass(frozen=True)
class Setup:
    """What a worker needs to know."""

    homes: Mapping[int, Home]
    builders: Mapping[str, bytes]
    """Pickled `Callable[[], Env]` per environment id."""
    plugins: tuple[str, ...]
    """Plugins that decide in the vector's process, and so do here."""
    configs: bytes
    """The settings that the plugins there were told, pickled."""

    def hosted(self) -> dict[int, HostedEnv] | Failure:
        """The environments of this worker, none of them built yet; or why there can be none."""
        try:
            return self._hosted()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # whatever an import raises, SystemExit included
            return failure_of(error)

    def _hosted(self) -> dict[int, HostedEnv]:
        from gem_core.plugins import manager

        manager.enable(*self.plugins)
        for config in pickle.loads(self.configs):
            manager.configure(config)
        build: dict[str, Callable[[], Env]] = {key: pickle.loads(data) for key, data in self.builders.items()}
        return {
            slot: HostedEnv(slot, build[home.env_id], autoreset=home.autoreset, portable=True)
            for slot, home in self.homes.items()
        }


class Marker:
    """Shared memory that says which slot is at work since when, even after the worker was killed.

    Two integers, each written at once, so that a reader never sees half of one.

    Args:
        file: a file descriptor of its own, shared by both sides.
    """

    _IDLE = -1

    def __init__(self, file: int) -> None:
        os.ftruncate(file, 16)
        self._numbers = memoryview(mmap.mmap(file, 16)).cast("q")

    def set(self, slot: int, opening: bool = False) -> None:
        """This slot is at work from now on, maybe at the episode after the one that its call ended."""
        numbers = self._numbers
        numbers[0] = self._IDLE  # until both are new
        numbers[1] = time.monotonic_ns()
        numbers[0] = 2 * slot + opening

    def clear(self) -> None:
        """Nobody is."""
        self._numbers[0] = self._IDLE

    def get(self) -> tuple[int, float] | None:
        """Who is at work, and since when on the monotonic clock."""
        who, since = self._numbers[0], self._numbers[1]
        if who == self._IDLE or self._numbers[0] != who:  # it is at the next one by now
            return None
        return who // 2, since / 1e9

    @property
    def opening(self) -> bool:
        """Whoever is at work has answered its call, and may be at its next episode's opening."""
        who = self._numbers[0]
        return who != self._IDLE and who % 2 == 1


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
    fcntl.fcntl(lifeline, fcntl.F_SETFL, fcntl.fcntl(lifeline, fcntl.F_GETFL) | os.O_ASYNC | os.O_NONBLOCK)
    with contextlib.suppress(BlockingIOError):
        os.read(lifeline, 1)
        sys.exit()  # it died before this could be arranged


def _keep_from_forks(stream: socket.socket) -> None:
    # A process that an environment forks must not read the vector's messages, nor keep the connection open.
    nothing = os.open(os.devnull, os.O_RDWR)
    os.register_at_fork(after_in_child=lambda: os.dup2(nothing, stream.fileno()))


def _serve(stream: socket.socket, marker: Marker) -> None:
    marker.clear()
    _keep_from_forks(stream)
    messages = _messages(stream)
    setup: Setup = pickle.loads(next(messages))
    hosted = setup.hosted()
    if isinstance(hosted, Failure):
        _send(stream, pickle.dumps(hosted))
        return
    _send(stream, pickle.dumps(READY))
    outbox: Outbox = queue.SimpleQueue()
    sender = threading.Thread(target=_send_all, args=(stream, outbox), daemon=True)
    sender.start()
    for slot, one in hosted.items():
        one.tick = partial(marker.set, slot)

    def emit(slot: int, outcome: Outcome) -> None:
        outbox.put((slot, outcome))
        if isinstance(call, Replay):  # what follows may have cost it its last worker, and this answer with it
            sent = threading.Event()
            outbox.put(sent)
            marker.clear()  # the vector takes its time
            sent.wait()

    for message in messages:
        calls: Mapping[int, Call] | None = pickle.loads(message)
        if calls is None:
            break
        for slot, call in calls.items():
            marker.set(slot)
            hosted[slot].perform(call, emit)
        marker.clear()
    for one in hosted.values():
        one.close()
    outbox.put(None)
    sender.join()


def _messages(stream: socket.socket) -> Iterator[bytes]:
    with stream.makefile("rb") as file:
        while header := file.read(HEADER.size):
            yield file.read(*HEADER.unpack(header))


def _send_all(stream: socket.socket, outbox: Outbox) -> None:
    # While quick environments compute, this thread waits for Python's lock, so their outcomes go out together; while
    # a slow one waits for something, they go out at once.
    open_ = True
    try:
        while open_:
            batch = [outbox.get()]
            while not outbox.empty():
                batch.append(outbox.get())
            open_ = batch[-1] is not None
            _send(stream, packed([item for item in batch if isinstance(item, tuple)]))
            for item in batch:
                if isinstance(item, threading.Event):
                    item.set()
    except BaseException:
        traceback.print_exc()
        os._exit(1)  # otherwise the vector would wait for answers that never come


def packed(outcomes: Sequence[tuple[int, Outcome]]) -> bytes:
    """Outcomes as one message; each `HostedEnv` has made sure that its infos can be sent."""
    # Plain tuples, because pickling a class for each costs four times as much.
    plain = [(slot, tuple(one) if type(one) is Transition else one) for slot, one in outcomes]
    return pickle.dumps(plain, pickle.HIGHEST_PROTOCOL)


def unpacked(message: list[tuple[int, Any]]) -> Iterator[tuple[int, Outcome]]:
    """The outcomes of such a message, once it is unpickled."""
    for slot, one in message:
        yield slot, new_transition(Transition, one) if one.__class__ is tuple and len(one) == 5 else one


def _send(stream: socket.socket, message: bytes) -> None:
    stream.sendall(HEADER.pack(len(message)) + message)
