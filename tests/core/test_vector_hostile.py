"""Environments that attack the process they live in: each costs its own episodes, and its neighbours play on."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import fcntl
import gc
import os
import resource
import signal
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest

import gem_core
from gem_core.errors import EnvFailure, FailureKind
from gem_core.failures import ErrorAction, FailurePolicy
from gem_core.vector import VectorEnv, wire
from gem_core.vector.calls import MOST_ERROR, MOST_TRACEBACK, Failure, InvalidAnswer, Transition, checked_info
from gem_core.vector.faults import log_failure
from gem_core.vector.hosted import HostedEnv
from gem_core.vector.process import _opened_anew
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
from gem_support.vector_envs import Walk, action, alone, children, env_threads, gone_soon, make, seed_of

pytestmark = [pytest.mark.long, pytest.mark.uncertain("well-behaved code must answer within a second or two")]

WIDTH = 3
LIMIT = 2.0
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
    from gem_core.vector.worker import MARKER

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
    raise ValueError("x" * (3 * wire.MOST_BYTES))


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


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    gem_core.register("demo-hostile:Hostile-v0", "test_vector_hostile:Hostile")
    monkeypatch.setattr("gem_core.vector.process.SILENCE_SECONDS", 3.0)
    yield
    assert not env_threads()
    assert not children()


def hostile(how: str, *bad: int, **settings: Any) -> VectorEnv:
    """A vector in one process, whose middle environment attacks in the episodes of those numbers."""
    seeds = tuple(seed_of(1, number, WIDTH) for number in bad)
    failures = FailurePolicy(timeout=LIMIT, max_failure_share=None, **settings)
    kwargs = {"bad_seeds": seeds, "how": how}
    return make("demo-hostile:Hostile-v0", WIDTH, "process", failures=failures, env_kwargs=kwargs)


def played(vec: VectorEnv, episodes: int) -> list[list[Any]]:
    """So many episodes of each slot: opening, turns, and the error that ended it."""
    found: list[list[Any]] = [[] for _ in range(WIDTH)]
    observations, _ = vec.reset()
    current: list[Any] = [[one] for one in observations]
    while any(len(one) < episodes for one in found):
        actions = {slot: action(len(current[slot]) - 1) for slot in range(WIDTH) if len(found[slot]) < episodes}
        for slot, answered in zip(actions, zip(*vec.step(actions), strict=True), strict=True):
            observation, reward, terminated, truncated, info = answered
            if terminated or truncated:
                final = info["final_info"]
                current[slot].append((info["final_observation"], reward, terminated, truncated))
                found[slot].append((current[slot], final.get("error")))
                current[slot] = [observation]
            else:
                current[slot].append((observation, reward, terminated, truncated))
    return found


def healthy(slot: int, number: int) -> Any:
    """An episode of a slot that nothing disturbs."""
    opening, turns = alone(seed_of(slot, number, WIDTH), LONGEST)
    return [opening, *turns], None


@pytest.mark.parametrize("how", [one.__name__ for one in (*CERTAIN, *HANGING)])
def test_an_attack_costs_its_own_episode_and_nobody_s(how: str) -> None:
    with hostile(how, 1) as vec:
        found = played(vec, 4)
        [statistics] = vec.statistics.values()
    for slot in (0, 2):
        assert found[slot] == [healthy(slot, number) for number in range(4)]
    assert [one for number, one in enumerate(found[1]) if number != 1] == [healthy(1, number) for number in (0, 2, 3)]
    shown, error = found[1][1]
    assert shown[-1] == ("", 0.0, False, True)
    assert len(shown) == 3  # the opening, a turn, and the one that failed
    assert error.startswith(("TimeoutError: no answer within 2 s", "ChildProcessError: its process "))
    assert (statistics.failed, statistics.failures) == (1, 1)


@pytest.mark.parametrize("how", [one.__name__ for one in LATE])
def test_an_attack_that_strikes_later_costs_no_neighbour_anything(how: str) -> None:
    with hostile(how, 1, 2) as vec:
        found = played(vec, 6)
    for slot in (0, 2):
        assert found[slot] == [healthy(slot, number) for number in range(6)]
    assert [found[1][number] for number in (0, 3, 4, 5)] == [healthy(1, number) for number in (0, 3, 4, 5)]


def test_a_process_of_its_own_may_answer_more_than_it_was_asked() -> None:
    with hostile("answers_twice_at_once", 1) as vec:
        found = played(vec, 4)
    for slot in (0, 2):
        assert found[slot] == [healthy(slot, number) for number in range(4)]
    assert found[1][1][0][-1] == ("forged", 1.0, True, False)
    assert [found[1][number] for number in (0, 2, 3)] == [healthy(1, number) for number in (0, 2, 3)]


def test_a_process_of_its_own_that_dies_between_two_calls_is_replaced() -> None:
    kwargs = {"bad_seeds": (seed_of(1, 0, WIDTH),), "how": "dies_among_neighbours"}
    with make("demo-hostile:Hostile-v0", WIDTH, "process", env_kwargs=kwargs) as vec:
        vec.reset()
        for turn in range(2):
            vec.step({1: action(turn)})
        pid = vec._workers[-2].process.pid  # type: ignore[attr-defined]
        os.kill(pid, signal.SIGKILL)
        assert gone_soon([pid])
        vec.step({0: "a"})  # the vector notices
        assert [*vec._workers] == [0]  # type: ignore[attr-defined]
        turn, terminated = 2, [False]
        while not terminated[0]:
            _, _, terminated, _, infos = vec.step({1: action(turn)})
            turn += 1
        assert infos[0]["episode"] == 1
        assert "error" not in infos[0]["final_info"]
        assert [*vec._workers] == [0]  # type: ignore[attr-defined]
        assert vec.statistics["demo-hostile:Hostile-v0"].failures == 0


def test_an_error_is_shown_without_its_middle() -> None:
    with hostile("has_an_error_longer_than_a_frame", 1) as vec:
        found = played(vec, 2)
        [statistics] = vec.statistics.values()
    error = found[1][1][1]
    assert error.startswith("ValueError: xxx")
    assert len(error) <= MOST_ERROR
    assert statistics.failures == 1
    long = wire.packed(0, Failure(FailureKind.RAISED, "x" * 10_000, "x" * 100_000, "x" * 10_000))
    _, failure = wire.unpacked(wire.listed([long]))[0]
    assert isinstance(failure, Failure)
    for text, most in zip(failure[1:], (MOST_ERROR, MOST_TRACEBACK, MOST_ERROR), strict=True):
        assert most - 10 < len(text) <= most


def test_a_worker_does_not_change_how_the_output_of_others_works() -> None:
    reading, writing = os.pipe()
    with open(reading), open(writing, "w"), _opened_anew(writing) as own:
        assert own is not None
        os.set_blocking(own, False)
        assert os.get_blocking(writing)


def test_a_file_as_output_is_shared_and_so_is_what_cannot_be_opened(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as log, _opened_anew(log.fileno()) as own:
        assert own is None
    one, other = socket.socketpair()
    with one, other, _opened_anew(one.fileno()) as own:
        assert own is None


def test_a_process_that_cannot_be_reaped_keeps_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(self: Any, timeout: float | None = None) -> int:  # as one that another process traces
        assert timeout is not None
        raise subprocess.TimeoutExpired("worker", timeout)

    dead: list[Any] = []
    with hostile("closes_descriptors", 1) as vec:
        dead += vec._workers.values()  # type: ignore[attr-defined]
        with monkeypatch.context() as patch:
            patch.setattr(subprocess.Popen, "wait", never)
            dead[0].kill()
        assert dead[0].killed
        dead[0].process.wait()


def test_a_worker_that_never_stops_talking_can_be_left(monkeypatch: pytest.MonkeyPatch) -> None:
    class Endless:
        def __getattr__(self, name: str) -> Any:
            return lambda *_: b"x"

    with hostile("closes_descriptors") as vec:
        [worker] = vec._workers.values()  # type: ignore[attr-defined]
        with monkeypatch.context() as patch:
            patch.setattr(worker, "socket", Endless())
            assert not worker.join(0.1)


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


class Uncopied:
    def __deepcopy__(self, memo: Any) -> Any:
        raise SystemExit


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
            raise asyncio.CancelledError


@pytest.mark.parametrize("backend", ["sync", "thread", "process"])
@pytest.mark.parametrize("how", [*LIES])
def test_a_lie_is_a_failure_of_its_own_turn(how: str, backend: str) -> None:
    gem_core.register("demo-hostile:Liar-v0", "test_vector_hostile:Liar")
    failures = FailurePolicy(max_failure_share=None)
    with make("demo-hostile:Liar-v0", 1, backend, failures=failures, env_kwargs={"how": how}) as vec:
        vec.reset()
        assert vec.step(["a"])[3].tolist() == [False]
        assert vec.step(["a"])[3].tolist() == [True]
        assert vec.step(["a"])[3].tolist() == [False]
        [statistics] = vec.statistics.values()
        assert (statistics.failed, statistics.failures) == (1, 1)


@pytest.mark.parametrize("backend", ["sync", "thread"])
def test_what_cannot_be_copied_is_shown_as_it_is(backend: str) -> None:
    class Ends(Walk):
        def step(self, action: str) -> Any:
            return "", 0.0, True, False, {"odd": Uncopied()}

    gem_core.register("demo-hostile:Ends-v0", Ends)
    with make("demo-hostile:Ends-v0", 1, backend) as vec:
        vec.reset()
        assert isinstance(vec.step(["a"])[4][0]["final_info"]["odd"], Uncopied)


def test_an_array_is_no_success() -> None:
    np = pytest.importorskip("numpy")
    with pytest.raises(InvalidAnswer, match="'success' that is neither true nor false: ValueError"):
        checked_info({"success": np.arange(2)})
    assert checked_info({"success": np.bool_(True), "prefix": np.str_("x")}) == {"success": True, "prefix": "x"}


def test_each_kind_of_failure_is_logged_once_and_the_log_has_an_end(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("WARNING", "gem_core.vector"):
        for number in range(200):
            log_failure("demo-hostile:Many-v0", Failure(FailureKind.RAISED, "e", place=str(number)), ErrorAction.DROP)
    assert len(caplog.records) == 50


def test_a_run_goes_on_though_every_episode_of_an_environment_closes_its_descriptors() -> None:
    with hostile("closes_descriptors", *range(20)) as vec:
        found = played(vec, 20)
    assert all(error for _, error in found[1])
    for slot in (0, 2):
        assert found[slot] == [healthy(slot, number) for number in range(20)]


def test_an_attack_in_each_of_its_attempts_is_a_failure_in_the_end() -> None:
    with hostile("closes_descriptors", 1, retries=2) as vec:
        found = played(vec, 3)
        [statistics] = vec.statistics.values()
    assert [one[1] is None for one in found[1]] == [True, False, True]
    assert (statistics.failed, statistics.failures) == (1, 3)
    assert found[0] == [healthy(0, number) for number in range(3)]


def test_an_attacker_with_a_process_of_its_own_is_caught_at_once() -> None:
    kwargs = {"bad_seeds": (seed_of(0, 1, 1),), "how": "closes_descriptors"}
    failures = FailurePolicy(max_failure_share=None)
    with make("demo-hostile:Hostile-v0", 1, "process", failures=failures, env_kwargs=kwargs) as vec:
        vec.reset()
        ended = 0
        while ended < 3:
            ended += vec.step(["a"])[2][0] or vec.statistics["demo-hostile:Hostile-v0"].failed > ended
        assert vec.statistics["demo-hostile:Hostile-v0"].failures == 1


def test_a_failure_can_still_stop_the_run() -> None:
    with hostile("writes_noise", 0, then="raise") as vec:
        vec.reset()
        vec.step(["a"] * WIDTH)
        with pytest.raises(EnvFailure, match="said what is no answer") as caught:
            vec.step(["b"] * WIDTH)
    assert caught.value.kind is FailureKind.LOST
    assert caught.value.seed == seed_of(1, 0, WIDTH)


# -- what travels ----------------------------------------------------------------------------------------------------


def received(slot: int, outcome: Any) -> Any:
    """An outcome after its way to the vector."""
    [(number, got)] = wire.unpacked(wire.listed([wire.packed(slot, outcome)]))
    assert number == slot
    return got


def test_plain_values_arrive_as_they_were() -> None:
    np = pytest.importorskip("numpy")
    info = {
        "nested": {"a": [1, 2.5, None, True, (1, ("b",))], 3: {4, 5}, None: frozenset("x"), (1, 2): "tuple key"},
        "big": [1 << 64, -(1 << 200), 1 << 63, -(1 << 63)],
        "bytes": b"\x00\xff",
        "lone": "\ud800",
        "\udfff": "key",
        "scalars": [1 + 2j, Decimal("1.50"), UUID(int=7), datetime(2026, 1, 2, tzinfo=timezone.utc), Path("a/b")],
        "numpy": [np.float64(0.5), np.int32(7), np.bool_(True), np.str_("x")],
    }
    transition = Transition("see \ud800", -0.5, False, True, info)
    assert received(3, transition) == transition
    assert received(0, ("opening", info)) == ("opening", info)
    array = np.arange(6, dtype=np.int16).reshape(2, 3)
    back = received(1, ("", {"board": array, "none": array[:0]}))[1]
    assert back["board"].dtype == array.dtype
    assert (back["board"] == array).all()
    assert back["none"].shape == (0, 3)
    failure = Failure(FailureKind.RAISED, "OSError: \ud800", "trace", "place")
    assert received(2, failure) == failure


def too_deep() -> Any:
    value: Any = []
    for _ in range(1000):
        value = [value]
    return value


def endless() -> Any:
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (object(), "builtins.object is no plain value"),
        (too_deep(), "nested more than 100 deep"),
        (endless(), "nested more than 100 deep"),
        (lambda: None, "no plain value"),
    ],
)
def test_what_is_no_plain_value_is_refused_where_it_is(value: Any, message: str) -> None:
    with pytest.raises(InvalidAnswer, match=f"its info cannot be sent between processes: .*{message}"):
        wire.packed(0, ("", {"deep": [value]}))


def test_an_answer_has_a_greatest_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MOST_BYTES", 1000)
    wire.packed(0, ("x" * 900, {}))
    with pytest.raises(InvalidAnswer, match="1,000 is the most between processes"):
        wire.packed(0, ("x" * 1000, {}))


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\xc1",
        b"\x90",
        msgspec.msgpack.encode("turn"),
        msgspec.msgpack.encode(["turn", 0, "text", 0.0, False, False, {}]),
        msgspec.msgpack.encode(["turn", 0, b"", float("nan"), False, False, {}]),
        msgspec.msgpack.encode(["turn", 0, b"", float("inf"), False, False, {}]),
        msgspec.msgpack.encode(["turn", 0, b"", 0.0, 1, False, {}]),
        msgspec.msgpack.encode(["turn", 0, b"\xff", 0.0, False, False, {}]),
        msgspec.msgpack.encode(["turn", 0, b"", 0.0, False, False, {}, 1]),
        msgspec.msgpack.encode(["opening", 0, b"", {"a": msgspec.msgpack.Ext(99, b"")}]),
        msgspec.msgpack.encode(
            ["opening", 0, b"", {"a": msgspec.msgpack.Ext(7, msgspec.msgpack.encode(["eval", "1"]))}]
        ),
        msgspec.msgpack.encode(
            ["opening", 0, b"", {"a": msgspec.msgpack.Ext(8, msgspec.msgpack.encode(["O", [1], bytes(8)]))}]
        ),
        msgspec.msgpack.encode(
            ["opening", 0, b"", {"a": msgspec.msgpack.Ext(8, msgspec.msgpack.encode(["f8", [1 << 40], bytes(8)]))}]
        ),
        msgspec.msgpack.encode(["failed", 0, "NO_KIND", b"", b"", b""]),
        msgspec.msgpack.encode(["turn", 0, b"", 0.0, True, False, {"error": "x"}]),
        msgspec.msgpack.encode(["turn", 0, b"", 0.0, False, False, {"task": 1}]),
        msgspec.msgpack.encode(["opening", 0, b"", {"error": "x"}]),
        msgspec.msgpack.encode(["opening", 0, b"", {"seed": 1}]),
        msgspec.msgpack.encode(["opening", 0, b"", {"suffix": 1}]),
    ],
)
def test_what_is_no_answer_is_garbage(message: bytes) -> None:
    with pytest.raises(wire.Garbage):
        wire.unpacked(wire.listed([message]))
