"""Environments that attack the process they live in, or lie. Workers import this, so it imports no pytest."""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import gc
import os
import resource
import signal
import socket
import stat
import threading
import time
from collections.abc import Callable
from typing import Any

import msgspec

from gem_core.vector import _wire as wire
from gem_core.vector._calls import Transition
from gem_core.vector._hosted import HostedEnv
from gem_support.attacks import (
    closes_descriptors,
    closes_descriptors_and_opens_others,
    has_an_alarm,
    kills_its_group,
    may_use_more_memory,
    say,
    sockets,
    takes_all_memory,
)
from gem_support.vector_envs import Walk

LONGEST = 6


def markers() -> list[int]:
    """The descriptors of the small shared memory that says who is at work."""
    found: list[int] = []
    for name in os.listdir("/proc/self/fd"):
        try:
            status = os.fstat(int(name))
        except OSError:
            continue
        if stat.S_ISREG(status.st_mode) and status.st_nlink == 0 and status.st_size == 16:
            found.append(int(name))
    return found


def mark(slot: int, since: int | None = None) -> None:
    """Say who is at work since when, as a worker does."""
    for file in markers():
        os.pwrite(file, wire_marker(slot, time.monotonic_ns() if since is None else since), 0)


def wire_marker(slot: int, since: int) -> bytes:
    from gem_core.vector._worker import MARKER

    return MARKER.pack(slot * 4, since)


def answer(slot: int, reward: float = 1.0) -> bytes:
    """A frame as a worker's."""
    return wire.framed([wire.packed(slot, Transition("forged", reward, True, False, {}))])


def later(attack: Callable[[], Any], seconds: float = 0.05) -> None:
    """Attack when somebody else may be at work."""
    timer = threading.Timer(seconds, attack)
    timer.daemon = True
    timer.start()


def closes_descriptors_and_waits() -> None:
    os.closerange(3, 64)
    time.sleep(600)


def shuts_the_socket() -> None:
    for file in sockets():
        socket.socket(fileno=os.dup(file)).shutdown(socket.SHUT_RDWR)


def never_blocks() -> None:
    for file in sockets():
        os.set_blocking(file, False)


def reads_the_calls() -> None:
    for file in sockets():
        threading.Thread(target=lambda file=file: [os.read(file, 1) for _ in range(1 << 20)], daemon=True).start()


def writes_noise() -> None:
    say(b"garbage " * 100)


def writes_a_pickle() -> None:
    import pickle

    say((60).to_bytes(8, "little") + pickle.dumps([(0, ("x", 1.0, True, False, {}))]))


def announces_more_than_comes() -> None:
    say(wire.HEADER.pack(wire.MARK, 5000) + b"x")


def announces_everything() -> None:
    say(wire.HEADER.pack(wire.MARK, 1 << 62))


def floods() -> None:
    while True:
        say(wire.framed([]) * 1000)


def sends_what_is_no_answer() -> None:
    say(wire.framed([msgspec.msgpack.encode(["turn", 1, 2, 3])]))


def nests_deeply() -> None:
    say(wire.framed([b"\x91" * 100_000 + b"\x90"]))


def answers_for_nobody() -> None:
    say(answer(999))


def earns_nothing_countable() -> None:
    frame = wire.framed([wire.packed(1, Transition("", 0.5, True, False, {}))])
    say(frame.replace(b"\xcb\x3f\xe0" + bytes(5), b"\xcb\x7f\xf8" + bytes(5)))


def answers_twice() -> None:
    say(answer(1), answer(1))


def answers_twice_at_once() -> None:
    """Once it is alone, where each answer is that of one call."""
    if neighbours():
        os.kill(os.getpid(), signal.SIGKILL)
    one = wire.packed(1, Transition("forged", 1.0, True, False, {}))
    say(wire.framed([one, one]))
    time.sleep(600)


def neighbours() -> int:
    return sum(type(one) is HostedEnv for one in gc.get_objects()) - 1


def dies_among_neighbours() -> None:
    if neighbours():
        os.kill(os.getpid(), signal.SIGKILL)


def changes_how_the_marker_works() -> None:
    for file in markers():
        with contextlib.suppress(OSError):  # of file systems that have no such way
            fcntl.fcntl(file, fcntl.F_SETFL, os.O_DIRECT | os.O_NONBLOCK)
    time.sleep(600)


def has_an_error_longer_than_a_frame() -> None:
    raise ValueError("x" * (3 * wire.MAX_BYTES))


def cuts_the_marker() -> None:
    for file in markers():
        os.ftruncate(file, 0)


def blames_its_neighbour_and_dies() -> None:
    mark(0)
    os.kill(os.getpid(), signal.SIGKILL)


def blames_nobody_and_dies() -> None:
    mark(-1)
    os.kill(os.getpid(), signal.SIGKILL)


def blames_its_neighbour_for_hanging() -> None:
    mark(2, 0)
    time.sleep(600)


def hangs_and_says_it_just_began() -> None:
    mark(1, 1 << 62)
    ctypes.PyDLL(None).pause()  # with Python's lock


def hangs_and_says_nothing_is_at_work() -> None:
    mark(-1)
    time.sleep(600)


def is_stopped() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def sets_an_alarm_for_others() -> None:
    signal.setitimer(signal.ITIMER_REAL, 0.05)


def dies_later() -> None:
    later(lambda: os.kill(os.getpid(), signal.SIGKILL))


def closes_descriptors_later() -> None:
    later(closes_descriptors)


def ends_the_sender() -> None:
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(SystemExit))


def passes_its_connection_on() -> None:
    pid = os.fork()
    if pid == 0:
        os.setsid()
        time.sleep(30)
        os._exit(0)
    os.kill(os.getpid(), signal.SIGKILL)


def lets_the_lifeline_signal_others() -> None:
    for name in range(3, 64):
        try:
            fcntl.fcntl(name, fcntl.F_SETOWN, os.getpid())
        except OSError:
            continue
    closes_descriptors()


def has_no_descriptor_left_and_dies() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
    ctypes.CDLL(None).abort()


def leaves_no_memory_to_others() -> None:
    may_use_more_memory(0)


def leaves_no_descriptors_to_others() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


CERTAIN = [
    takes_all_memory,
    closes_descriptors,
    closes_descriptors_and_waits,
    closes_descriptors_and_opens_others,
    shuts_the_socket,
    writes_noise,
    writes_a_pickle,
    announces_everything,
    floods,
    sends_what_is_no_answer,
    nests_deeply,
    answers_for_nobody,
    earns_nothing_countable,
    cuts_the_marker,
    blames_its_neighbour_and_dies,
    blames_nobody_and_dies,
    kills_its_group,
    has_an_alarm,
    passes_its_connection_on,
    lets_the_lifeline_signal_others,
    has_no_descriptor_left_and_dies,
]
"""Attacks that end the worker in the attacker's own turn."""
HANGING = [
    announces_more_than_comes,
    blames_its_neighbour_for_hanging,
    changes_how_the_marker_works,
    hangs_and_says_it_just_began,
    hangs_and_says_nothing_is_at_work,
    is_stopped,
]
"""Those that only a clock notices."""
LATE = [
    answers_twice,
    never_blocks,
    reads_the_calls,
    sets_an_alarm_for_others,
    dies_later,
    closes_descriptors_later,
    ends_the_sender,
    leaves_no_memory_to_others,
    leaves_no_descriptors_to_others,
]
"""Those that may strike in a neighbour's turn, or after the episode; the attacker may get away with it."""
OTHERS = [answers_twice_at_once, dies_among_neighbours, has_an_error_longer_than_a_frame]
"""Those with a test of their own."""
ATTACKS: dict[str, Callable[[], None]] = {one.__name__: one for one in (*CERTAIN, *HANGING, *LATE, *OTHERS)}


class Hostile(Walk):
    """A walk that attacks in the second turn of the episodes with the seeds given."""

    def __init__(self, bad_seeds: tuple[int, ...] = (), how: str = "") -> None:
        super().__init__(LONGEST)
        self.bad_seeds, self.how, self.hungry = bad_seeds, how, how.startswith("leaves_no_")

    def reset(self, seed: int | None = None, **options: Any) -> Any:
        self.turn, self.bad = 0, seed in self.bad_seeds
        opening = super().reset(seed=seed)
        self.left += 2 * self.bad
        return opening

    def step(self, action: str) -> Any:
        self.turn += 1
        if self.bad and self.turn == 2:
            ATTACKS[self.how]()
        if self.hungry:  # for what an attacker may have left none of
            with open(os.devnull) as file:
                file.read(len(bytearray(1 << 26)))
        return super().step(action)


# -- exceptions and infos that lie -----------------------------------------------------------------------------------


class Nameless(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise ValueError


class Mute(RuntimeError):
    def __str__(self) -> str:
        raise ValueError


class Masked(ValueError):
    __class__ = property(lambda self: 1 / 0)  # type: ignore[assignment]


class Unnamed(ValueError, metaclass=Nameless):
    pass


class Untrue(ValueError):
    def __bool__(self) -> bool:
        raise ValueError


class Unformatted(str):
    def __format__(self, _: str) -> str:
        raise ValueError


class Spoken(ValueError):
    def __str__(self) -> str:
        return Unformatted("spoken")


def its_own_cause() -> BaseException:
    error = ValueError("own")
    error.__cause__ = error
    return error


def caused_by(cause: BaseException) -> BaseException:
    error = ValueError("caused")
    error.__cause__ = cause
    return error


LIES: dict[str, Callable[[], Any]] = {
    "mute": Mute,
    "masked": Masked,
    "unnamed": Unnamed,
    "untrue": lambda: caused_by(Untrue()),
    "spoken": Spoken,
    "own cause": its_own_cause,
    "masked cause": lambda: caused_by(Masked()),
    "success": lambda: {"success": Untrue()},
    "use_tool": lambda: {"use_tool": Untrue()},
    "prefix": lambda: {"prefix": ["text"]},
    "suffix": lambda: {"suffix": 1},
}


class Liar(Walk):
    """Answers its second turn with an exception or an info."""

    def __init__(self, how: str = "") -> None:
        super().__init__()
        self.how, self.turn = how, 0

    def step(self, action: str) -> Any:
        self.turn += 1
        if self.turn != 2:
            return "", 0.0, False, False, {}
        lie = LIES[self.how]()
        if type(lie) is dict:
            return "", 0.0, False, False, lie
        raise lie

    def close(self) -> None:
        if self.turn:
            import asyncio  # a sixth of what a worker imports

            raise asyncio.CancelledError
