"""Waiting for a turn at something shared takes none of a call's time limit; everything else does."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

import gem_core
from gem_core.errors import EnvError
from gem_core.failures import FailurePolicy
from gem_core.tools import Function, Tool, Toolbox, ToolEnv
from gem_core.waiting import set_call_clock, turn_at, waiting
from gem_support.vector_envs import WAKE, Walk, children, env_threads, make
from gem_support.waiting import wait_until

LIMIT = 2.0
pooled = pytest.mark.parametrize("backend", ["thread", "process"])


class Patient(Walk):
    """Waits in the way that the action says."""

    def step(self, action: str) -> Any:
        if action == "turn":
            with waiting(), waiting():
                time.sleep(2 * LIMIT)
        if action == "twice":
            for _ in range(2):
                with waiting():
                    time.sleep(0.75 * LIMIT)
        if action == "hang":
            with waiting():
                pass
            WAKE.wait(120)
        return action, 0.0, False, False, {}


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    gem_core.register("demo-waiting:Patient-v0", "test_waiting:Patient")
    WAKE.clear()
    yield
    WAKE.set()
    wait_until(lambda: not env_threads())
    assert not children()


@pooled
@pytest.mark.uncertain("well-behaved code must answer within a second or two")
def test_waiting_takes_none_of_the_time_limit(backend: Any) -> None:
    with make("demo-waiting:Patient-v0", 2, backend, workers=2, failures=FailurePolicy(timeout=LIMIT)) as vec:
        vec.reset()
        assert vec.step(["turn", "twice"])[0] == ["turn", "twice"]
        assert vec.step({0: "hang"})[4][0]["final_info"]["error"].startswith("TimeoutError: no answer within 2 s")


def test_a_wait_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gem_core.vector._process.MAX_SECONDS", 0.0)
    monkeypatch.setattr("gem_core.vector._process.SILENCE_SECONDS", 0.0)
    with make("demo-waiting:Patient-v0", 1, "process", failures=FailurePolicy(timeout=0.5)) as vec:
        vec.reset()
        error = vec.step(["turn"])[4][0]["final_info"]["error"]
        assert error.startswith("TimeoutError: no answer within 0.5 s")


def test_a_turn_that_is_never_given_back_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gem_core.waiting.MAX_SECONDS", 0.01)
    turns = threading.BoundedSemaphore(1)
    with turn_at(turns), pytest.raises(EnvError, match=r"waited 0\.01 seconds for a turn"), turn_at(turns):
        pass
    with turn_at(turns):
        pass


def test_without_a_clock_nothing_happens() -> None:
    with waiting():
        pass


def test_a_clock_pauses_once_and_is_kept_by_its_thread() -> None:
    class Heard:
        def __init__(self) -> None:
            self.said: list[str] = []

        def pause(self) -> None:
            self.said.append("pause")

        def resume(self) -> None:
            self.said.append("resume")

    heard = Heard()

    def work() -> None:
        set_call_clock(heard)
        with waiting(), waiting():
            heard.said.append("inside")
        with pytest.raises(OSError, match="gone"), waiting():
            raise OSError("gone")

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    with waiting():  # another thread's
        pass
    assert heard.said == ["pause", "inside", "resume", "pause", "resume"]


class Slow(Tool):
    """Takes three quarters of an environment's time limit."""

    timeout = 60.0

    def functions(self) -> list[Function]:
        return [Function("slow", "Takes long.")]

    def call(self, function: str, arguments: dict[str, Any], context: Any) -> str:
        time.sleep(0.6 * LIMIT)
        return "done"


@pytest.mark.uncertain("well-behaved code must answer within a second or two")
def test_a_busy_tool_costs_no_environment_its_episode() -> None:
    toolbox = Toolbox([Slow()], max_concurrent=1)
    call = '<tool_call>{"name": "slow", "arguments": {}}</tool_call>'
    wrappers = [partial(ToolEnv, tools=toolbox)]
    failures = FailurePolicy(timeout=LIMIT)
    with make("demo-waiting:Patient-v0", 4, "thread", wrappers=wrappers, failures=failures) as vec:
        vec.reset()
        assert [observation.strip() for observation in vec.step([call] * 4)[0]] == ["done"] * 4
