"""What runs in a worker process: environments, a thread that sends what they answer, and nothing else."""

from __future__ import annotations

import contextlib
import fcntl
import json
import mmap
import os
import pickle
import queue
import signal
import socket
import struct
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

from gem_core.env import Env
from gem_core.vector import _wire as wire
from gem_core.vector._calls import CallOutcome, EnvCall, FailedCall, Replay, failure_of
from gem_core.vector._hosted import HostedEnv
from gem_core.waiting import set_call_clock

CALLS = struct.Struct("<Q")
"""Length of the calls that follow; what is said in the other direction is in `wire`."""
MARKER = struct.Struct("=qq")
"""Who is at work, and since when: a slot with flags, and nanoseconds."""
IDLE, _OPENING, _WAITING, _FLAGS = -1, 1, 2, 4
FIRST_FOR_MEMORY = "500"
"""Of a worker, where memory is short and the kernel chooses whom to kill: before the vector's process, which has 0."""
RAN_OUT = 71
"""Exit status of a worker without memory, descriptors or threads."""
Outbox: TypeAlias = "queue.SimpleQueue[bytes | threading.Event | None]"
"""Answers to send, events to set once those before them were sent, and `None` at the end."""


class SlotConfig(NamedTuple):
    """One environment, as a worker builds it."""

    env_id: str
    autoreset: bool


@dataclass(frozen=True)
class Setup:
    """What a worker needs to know."""

    homes: Mapping[int, SlotConfig]
    builders: Mapping[str, bytes]
    """Pickled `Callable[[], Env]` per environment id."""
    plugins: tuple[str, ...]
    """Plugins that decide in the vector's process, and so do here."""

    def hosted(self) -> dict[int, HostedEnv] | FailedCall:
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
        build: dict[str, Callable[[], Env]] = {key: pickle.loads(data) for key, data in self.builders.items()}
        return {
            slot: HostedEnv(slot, build[home.env_id], autoreset=home.autoreset, pack=wire.packed)
            for slot, home in self.homes.items()
        }


class Marker:
    """Which slot is at work since when; written here, and read by the vector even after this process was killed.

    Two integers in a small shared memory. An environment could write them, too: the vector takes them for a hint.

    Args:
        file: descriptor of the shared memory.
    """

    def __init__(self, file: int) -> None:
        self._numbers = memoryview(mmap.mmap(file, MARKER.size)).cast("q")
        self._paused_at = 0

    def set(self, slot: int, opening: bool = False) -> None:
        """This slot is at work from now on, maybe at the episode after the one that its call ended."""
        numbers = self._numbers
        numbers[0] = IDLE  # until both are new
        numbers[1] = time.monotonic_ns()
        numbers[0] = slot * _FLAGS + opening * _OPENING

    def clear(self) -> None:
        """Nobody is."""
        self._numbers[0] = IDLE

    def pause(self) -> None:
        """The slot at work waits for its turn at something shared."""
        self._paused_at = time.monotonic_ns()
        self._numbers[0] |= _WAITING

    def resume(self) -> None:
        """It works again; its time does not include the wait."""
        self._numbers[1] += time.monotonic_ns() - self._paused_at
        self._numbers[0] &= ~_WAITING


class MarkerReader:
    """The vector's side of a marker: a file that is read and never mapped, as who maps a file dies when others cut it.

    The file is opened here, because a worker can change how a descriptor works that it has inherited (`O_DIRECT`).

    Args:
        path: of the file, which may be unlinked from now on.
    """

    def __init__(self, path: str) -> None:
        self._file = Path(path).open("rb+", buffering=0)  # noqa: SIM115  closed by `close`
        self._file.write(MARKER.pack(IDLE, 0))

    def get(self) -> tuple[int, float] | None:
        """Who is at work, and since when on the monotonic clock; `None` for nobody, and for one that waits."""
        who, since = self._read()
        if who < 0 or who & _WAITING or self._read()[0] != who:  # it is at the next one by now
            return None
        return who // _FLAGS, since / 1e9

    @property
    def waiting(self) -> bool:
        """Whoever is at work waits for its turn at something shared."""
        who, _ = self._read()
        return who >= 0 and bool(who & _WAITING)

    @property
    def opening(self) -> bool:
        """Whoever is at work has answered its call, and may be at its next episode's opening."""
        who, _ = self._read()
        return who >= 0 and bool(who & _OPENING)

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _read(self) -> tuple[int, int]:
        data = os.pread(self._file.fileno(), MARKER.size, 0)
        return MARKER.unpack(data) if len(data) == MARKER.size else (IDLE, 0)


def main() -> None:
    """Serve the vector whose file descriptors the command line names."""
    connection, lifeline, marker = json.loads(sys.argv[2])
    for file in (connection, lifeline, marker):
        os.set_inheritable(file, False)
    _die_with_the_vector(lifeline)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(FIRST_FOR_MEMORY)
    try:
        with socket.socket(fileno=connection) as stream:
            _serve(stream, Marker(marker))
    except OSError:  # the connection is gone: the vector is, or an environment closed it
        os._exit(1)


def _die_with_the_vector(lifeline: int) -> None:
    # The kernel sends SIGIO, which ends every process of this group, when the other end of the pipe is closed: by the
    # vector, or by its death, however hard. A thread could not, while an environment keeps Python's lock.
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
    if hasattr(fcntl, "F_SETSIG"):  # Linux: a signal that no environment can ignore
        fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
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
    if isinstance(hosted, FailedCall):
        stream.sendall(wire.framed([wire.packed(wire.NOBODY, hosted)]))
        return
    stream.sendall(wire.framed([]))
    outbox: Outbox = queue.SimpleQueue()
    sender = threading.Thread(target=_send_all, args=(stream, outbox), daemon=True)
    sender.start()
    set_call_clock(marker)
    for slot, one in hosted.items():
        one.tick = partial(marker.set, slot)
        one.run_out = _end

    def emit(slot: int, outcome: CallOutcome) -> None:
        outbox.put(hosted[slot].data(outcome))
        if isinstance(call, Replay):  # what follows may have cost it its last worker, and this answer with it
            sent = threading.Event()
            outbox.put(sent)
            marker.clear()  # the vector takes its time
            sent.wait()

    for message in messages:
        calls: Mapping[int, EnvCall] | None = pickle.loads(message)
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


def _end(error: BaseException) -> None:
    """End this process, whose environments all want what it has not: the vector finds out who took it."""
    traceback.print_exception(error)
    os._exit(RAN_OUT)


def _messages(stream: socket.socket) -> Iterator[bytes]:
    with stream.makefile("rb") as file:
        while header := file.read(CALLS.size):
            yield file.read(*CALLS.unpack(header))


def _send_all(stream: socket.socket, outbox: Outbox) -> None:
    # While quick environments compute, this thread waits for Python's lock, so their outcomes go out together; while
    # a slow one waits for something, they go out at once.
    open_ = True
    try:
        while open_:
            batch, size = [outbox.get()], 0
            while not outbox.empty() and size <= wire.MAX_BYTES:
                size += len(batch[-1]) if isinstance(batch[-1], bytes) else 0
                batch.append(outbox.get())
            open_ = batch[-1] is not None
            if answers := [item for item in batch if isinstance(item, bytes)]:
                stream.sendall(wire.framed(answers))
            for item in batch:
                if isinstance(item, threading.Event):
                    item.set()
    except OSError:  # the connection is gone: the vector is, or an environment closed it
        os._exit(1)
    except BaseException:
        traceback.print_exc()
        os._exit(1)  # otherwise the vector would wait for answers that never come
