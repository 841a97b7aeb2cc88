"""Environments that attack the process they live in: each costs its own episodes, and its neighbours play on."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Iterator
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
from gem_core.vector import VectorEnv
from gem_core.vector import _wire as wire
from gem_core.vector._calls import (
    MAX_ERROR_LENGTH,
    MAX_TRACEBACK_LENGTH,
    FailedCall,
    InvalidAnswer,
    Transition,
    checked_info,
)
from gem_core.vector._failures import log_failure
from gem_core.vector._process import _opened_anew
from gem_support.hostile import CERTAIN, HANGING, LATE, LIES, LONGEST
from gem_support.vector_envs import Walk, action, alone, children, env_threads, gone_soon, make, seed_of

pytestmark = [pytest.mark.long, pytest.mark.uncertain("well-behaved code must answer within a second or two")]

WIDTH = 3
LIMIT = 2.0


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    gem_core.register("demo-hostile:Hostile-v0", "gem_support.hostile:Hostile")
    monkeypatch.setattr("gem_core.vector._process.SILENCE_SECONDS", 3.0)
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
    assert len(error) <= MAX_ERROR_LENGTH
    assert statistics.failures == 1
    long = wire.packed(0, FailedCall(FailureKind.RAISED, "x" * 10_000, "x" * 100_000, "x" * 10_000))
    _, failure = wire.unpacked(wire.listed([long]))[0]
    assert isinstance(failure, FailedCall)
    for text, most in zip(failure[1:], (MAX_ERROR_LENGTH, MAX_TRACEBACK_LENGTH, MAX_ERROR_LENGTH), strict=True):
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


class Uncopied:
    def __deepcopy__(self, memo: Any) -> Any:
        raise SystemExit


@pytest.mark.parametrize("backend", ["sync", "thread", "process"])
@pytest.mark.parametrize("how", [*LIES])
def test_a_lie_is_a_failure_of_its_own_turn(how: str, backend: str) -> None:
    gem_core.register("demo-hostile:Liar-v0", "gem_support.hostile:Liar")
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
            log_failure(
                "demo-hostile:Many-v0", FailedCall(FailureKind.RAISED, "e", place=str(number)), ErrorAction.DROP
            )
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
    failure = FailedCall(FailureKind.RAISED, "OSError: \ud800", "trace", "place")
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
    monkeypatch.setattr(wire, "MAX_BYTES", 1000)
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
        msgspec.msgpack.encode(["turn", 0, b"", 0.0, False, False, {"data_index": 1}]),
        msgspec.msgpack.encode(["opening", 0, b"", {"error": "x"}]),
        msgspec.msgpack.encode(["opening", 0, b"", {"seed": 1}]),
        msgspec.msgpack.encode(["opening", 0, b"", {"suffix": 1}]),
    ],
)
def test_what_is_no_answer_is_garbage(message: bytes) -> None:
    with pytest.raises(wire.Garbage):
        wire.unpacked(wire.listed([message]))
