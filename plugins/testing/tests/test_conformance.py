"""The conformance kit: the shipped games pass it, and each of its checks catches the environment it was made for."""

from __future__ import annotations

import gc
import itertools
import math
import multiprocessing
import os
import queue
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

import gem_core
from gem_core.env import Env, Wrapper
from gem_core.errors import DuplicateIdError, NotFoundError, PluginError
from gem_core.plugins import PluginManager, manager
from gem_core.specs import EnvSpec
from gem_testing import ConformanceError, EnvConformance, IsolatedPluginManager, check_env, checks
from gem_testing._play import Subject

SPECS = [registration.spec for registration in manager.registrations("gem_envs", "game")]
# One id of each class: a fault of Python's shows in any of them.
GAMES = [*{spec.entry_point: spec.id for spec in reversed(SPECS)}.values()]


@pytest.mark.skipif(sys.version_info[:2] == (3, 11), reason="here test_suite.py checks all ids")
@pytest.mark.parametrize("env_id", GAMES)
def test_shipped_games_conform(env_id: str) -> None:
    check_env(env_id)


class TestCorridor(EnvConformance):
    """As an author of a plugin uses it."""

    env_id = "game:Corridor-v0"
    kwargs = {"length": 4}  # noqa: RUF012


# -- environments to check ---------------------------------------------------------------------------------------------


class Count(Env):
    """Repeat the number shown, three times. Keeps the contract; each of the following breaks it in one place."""

    def __init__(self, turns: int = 3) -> None:
        self.turns = turns

    def reset(self, seed: int | None = None, **options: Any) -> Any:
        super().reset(seed=seed)
        self.turn = 0
        self.number = self.rng.randint(1, 9)
        return str(self.number), {}

    def step(self, action: str) -> Any:
        self.turn += 1
        hit = action == str(self.number)
        self.number = self.rng.randint(1, 9)
        over = self.turn >= self.turns
        return str(self.number), float(hit), over, False, {"success": hit, "invalid_action": len(action) != 1}

    def sample_random_action(self) -> Any:
        return str(self.rng.randint(1, 9))


class Fixed(Count):
    """Has one episode only, which is allowed."""

    def reset(self, seed: int | None = None, **options: Any) -> Any:
        super().reset(seed=0)
        return str(self.number), {}


class KnowsTheAnswer(Count):
    """Has an expert, which is allowed."""

    def expert_action(self) -> Any:
        return str(self.number)


class OneTurn(Count):
    def __init__(self) -> None:
        super().__init__(turns=1)


class Endless(Count):
    def __init__(self) -> None:
        super().__init__(turns=10**9)


class WithoutState(Count):
    """Refuses to be saved, which is allowed."""

    def get_state(self) -> Any:
        raise NotImplementedError


class Wrapped(Wrapper):
    def __init__(self) -> None:
        super().__init__(Count())


# construction


class Connects(Count):
    def __init__(self) -> None:
        super().__init__()
        with suppress(OSError):  # even one that gets over it
            socket.create_connection(("127.0.0.1", 9), timeout=1)


class ConnectsAndFails(Count):
    def __init__(self) -> None:
        super().__init__()
        with socket.socket() as one:
            one.connect(("127.0.0.1", 9))


class RunsACommand(Count):
    def __init__(self) -> None:
        super().__init__()
        subprocess.run([sys.executable, "-c", ""], check=True)


class StartsAProcess(Count):
    def __init__(self) -> None:
        super().__init__()
        process = multiprocessing.get_context("spawn").Process(target=print)
        process.start()
        process.join()


class StartsAThread(Count):
    def __init__(self) -> None:
        super().__init__()
        self.stop = threading.Event()
        threading.Thread(target=self.stop.wait, name="worker of Count", daemon=True).start()

    def close(self) -> None:
        self.stop.set()


# keyword arguments


class WaitsForAThread(Count):
    """Starts threads that may have ended when the constructor returns; whether they have must not matter."""

    def __init__(self) -> None:
        super().__init__()
        thread = threading.Thread(target=self._start_another, name="first")
        thread.start()
        thread.join()

    def _start_another(self) -> None:
        threading.Thread(target=print, args=("",), kwargs={"end": ""}, name="second").start()


class SwallowsArguments(Count):
    def __init__(self, **_: Any) -> None:
        super().__init__()


# reset


class ResetsToText(Count):
    def reset(self, seed: int | None = None, **options: Any) -> Any:
        return super().reset(seed)[0]


class ResetsToBytes(Count):
    def reset(self, seed: int | None = None, **options: Any) -> Any:
        return b"7", super().reset(seed)[1]


class ResetsWithoutInfo(Count):
    def reset(self, seed: int | None = None, **options: Any) -> Any:
        return super().reset(seed)[0], None


class WantsSmallSeeds(Count):
    def reset(self, seed: int | None = None, **options: Any) -> Any:
        np.random.RandomState(seed)
        return super().reset(seed)


class WantsASeed(Count):
    def reset(self, seed: int | None = None, **options: Any) -> Any:
        return super().reset(seed + 0)  # type: ignore[operator]


# step


class Answers(Count):
    """Changes one part of what `step` gives."""

    observation: Any = ""
    reward: Any = 0.0
    terminated: Any = False
    truncated: Any = True
    info: Any = {"success": False}  # noqa: RUF012

    def step(self, action: str) -> Any:
        return self.observation, self.reward, self.terminated, self.truncated, self.info


class FourParts(Count):
    def step(self, action: str) -> Any:
        return super().step(action)[:4]


class RewardNan(Answers):
    reward = math.nan


class RewardInfinite(Answers):
    reward = math.inf


class RewardText(Answers):
    reward = "1"


class RewardBool(Answers):
    reward = True


class RewardArray(Answers):
    reward = np.zeros(1)


class FlagNumber(Answers):
    terminated = 1


class FlagNumpy(Answers):
    truncated = np.True_


class ObservationNone(Answers):
    observation = None


class InfoNone(Answers):
    info = None


class RaisesInPlay(Count):
    def step(self, action: str) -> Any:
        raise KeyError("board")


# info


class InfoSet(Answers):
    info = {"success": True, "seen": {1, 2}}  # noqa: RUF012


class InfoNan(Answers):
    info = {"success": True, "distance": math.nan}  # noqa: RUF012


class InvalidNumber(Answers):
    info = {"success": True, "invalid_action": 0}  # noqa: RUF012


class SuffixNone(Answers):
    info = {"success": True, "suffix": None}  # noqa: RUF012


class InfoReserved(Answers):
    info = {"success": True, "error": "bad move"}  # noqa: RUF012


class InfoGrows(Count):
    def reset(self, seed: int | None = None, **options: Any) -> Any:
        self.history: list[str] = []
        return super().reset(seed)

    def step(self, action: str) -> Any:
        self.history.append(action)
        *rest, info = super().step(action)
        return *rest, {**info, "history": self.history}


# success


class SaysNothing(Answers):
    info = {}  # noqa: RUF012


class SuccessNumber(Answers):
    info = {"success": 1.0}  # noqa: RUF012


# random actions


class SamplesNumbers(Count):
    def sample_random_action(self) -> Any:
        return 7


class SamplesUnseeded(Count):
    def sample_random_action(self) -> Any:
        return str(random.SystemRandom().randint(1, 9))


class SamplesInvalid(Count):
    def sample_random_action(self) -> Any:
        return str(self.rng.randint(7, 12))


# experts


class ExpertOfNumbers(Count):
    def expert_action(self) -> Any:
        return self.number


class InvalidExpert(Count):
    def expert_action(self) -> Any:
        return f"{self.number}!"


class LosingExpert(Count):
    def expert_action(self) -> Any:
        return str(self.number % 9 + 1)


class ExpertByChance(Count):
    def expert_action(self) -> Any:
        return str(self.rng.random())


class MeddlingExpert(Count):
    def expert_action(self) -> Any:
        self.number = 5
        return "5"


# form


class HidesItsForm(Count):
    def sample_random_action(self) -> Any:
        return f"\\boxed{{{super().sample_random_action()}}}"


# closing


class ClosesOnce(Count):
    def __init__(self) -> None:
        super().__init__()
        self.handle: list[int] = [1]

    def close(self) -> None:
        self.handle.pop()


class ClosesAfterReset(Count):
    def close(self) -> None:
        self.number += 1


# seeding


class IgnoresSeeds(Count):
    def reset(self, seed: int | None = None, **options: Any) -> Any:
        return super().reset(None)


class IgnoresSeedZero(Count):
    def reset(self, seed: int | None = None, **options: Any) -> Any:
        return super().reset(seed or None)


class KeepsItsTurn(Count):
    def __init__(self) -> None:
        super().__init__()
        self.turn = 0

    def reset(self, seed: int | None = None, **options: Any) -> Any:
        turn = self.turn
        result = super().reset(seed)
        self.turn = turn % 2
        return result


class ForgetsItsGenerator(Count):
    def reset(self, seed: int | None = None, **options: Any) -> Any:
        return super().reset(random.SystemRandom().getrandbits(32) if seed is None else seed)


class HashesItsState(Count):
    def step(self, action: str) -> Any:
        return f"{id(self)}", *super().step(action)[1:]


# seeds differ


class OneSeedForAll(Count):
    def reset(self, seed: int | None = None, **options: Any) -> Any:
        return super().reset(None if seed is None else 0)


# global random state


class SeedsGlobally(Count):
    def reset(self, seed: int | None = None, **options: Any) -> Any:
        random.seed(seed)
        return super().reset(seed)


class DrawsGlobally(Count):
    def step(self, action: str) -> Any:
        random.random()
        return super().step(action)


class SamplesGlobally(Count):
    def sample_random_action(self) -> Any:
        np.random.rand()
        return super().sample_random_action()


class BuildsGlobally(Count):
    def __init__(self) -> None:
        super().__init__()
        np.random.seed(0)


class ListensGlobally(Count):
    def reset(self, seed: int | None = None, **options: Any) -> Any:
        super().reset(seed)
        return str(random.getstate()[1][:3]), {}


# own state


class SharesItsNumber(Count):
    shared = SimpleNamespace(number=0)

    def reset(self, seed: int | None = None, **options: Any) -> Any:
        observation, info = super().reset(seed)
        self.shared.number = self.number
        return observation, info

    def step(self, action: str) -> Any:
        self.number = self.shared.number
        result = super().step(action)
        self.shared.number = self.number
        return result


# threads


class SharesScratch(Count):
    scratch = SimpleNamespace(action="")

    def step(self, action: str) -> Any:
        self.scratch.action = action
        time.sleep(0.001)
        return self.scratch.action, *super().step(action)[1:]


class NeedsTheMainThread(Count):
    def step(self, action: str) -> Any:
        signal.signal(signal.SIGUSR2, signal.SIG_DFL)
        return super().step(action)


# pickling


class HoldsALambda(Count):
    def __init__(self) -> None:
        super().__init__()
        self.rule = lambda text: text


class PicklesWithoutGenerator(Count):
    def __getstate__(self) -> Any:
        return {**self.__dict__, "_rng": None}


# saved state


class SavesItself(Count):
    def get_state(self) -> Any:
        return self.__dict__

    def set_state(self, state: Any) -> None:
        self.__dict__.update(state)


class RestoresOnce(Count):
    def set_state(self, state: Any) -> None:
        self.__dict__.update(state)


# spawning


class SpawnsItself(Count):
    def spawn(self, *, same_state: bool = False, **kwargs: Any) -> Env:
        return self


class SpawnsSiamese(Count):
    def spawn(self, *, same_state: bool = False, **kwargs: Any) -> Env:
        twin = super().spawn(same_state=same_state, **kwargs)
        twin.__dict__ = self.__dict__
        return twin


class SpawnsOther(Count):
    def spawn(self, *, same_state: bool = False, **kwargs: Any) -> Env:
        return super().spawn(same_state=same_state, turns=2)


class SpawnsFresh(Count):
    def spawn(self, *, same_state: bool = False, **kwargs: Any) -> Env:
        twin = super().spawn(**kwargs)
        if same_state:
            twin.reset(seed=5)
        return twin


# order


class AnswersAlways(Count):
    """Its methods belong to the instance, so that the guards of `Env` do not see the calls."""

    def __init__(self) -> None:
        super().__init__()
        self.number = 1
        self.turn = 0
        self.reset = self._reset  # type: ignore[method-assign]
        self.step = self._step  # type: ignore[method-assign]

    def _reset(self, seed: int | None = None, **options: Any) -> Any:
        self.turn = 0
        return "1", {}

    def _step(self, action: str) -> Any:
        self.turn += 1
        return "1", 0.0, self.turn >= self.turns, False, {"success": False}


# adversarial actions


class WantsNumbers(Count):
    def step(self, action: str) -> Any:
        int(action or 0)
        return super().step(action)


class TrustsIsdigit(Count):
    def step(self, action: str) -> Any:
        number = int(action) if action.isdigit() and len(action) < 9 else 0
        return super().step(str(number))


class Echoes(Count):
    def step(self, action: str) -> Any:
        return action, *super().step(action)[1:]


class Evaluates(Count):
    def step(self, action: str) -> Any:
        with suppress(Exception):
            action = str(eval(action.removeprefix("\\boxed{").removesuffix("}")))
        return super().step(action)


class RewardsLength(Count):
    def step(self, action: str) -> Any:
        observation, _, *rest = super().step(action)
        return observation, 2.0 ** len(action) if len(action) < 1024 else math.inf, *rest


class BreaksLater(Count):
    def step(self, action: str) -> Any:
        result = super().step(action)
        if not action:
            del self.number
        return result

    def sample_random_action(self) -> Any:
        _ = self.number
        return super().sample_random_action()


# long actions


class IsSlow(Count):
    def step(self, action: str) -> Any:
        end = time.thread_time() + 0.15 * (len(action) > 10**6 and action[0] == "x")
        while time.thread_time() < end:
            pass
        return super().step(action)


class RaisesWhenLong(Count):
    def step(self, action: str) -> Any:
        if len(action) > 10**6:
            raise MemoryError("too long")
        return super().step(action)


GOOD = [
    Count,
    Fixed,
    KnowsTheAnswer,
    OneTurn,
    Endless,
    WithoutState,
    Wrapped,
]
BAD: list[tuple[checks.Check, type[Env], str]] = [
    (checks.construction, Connects, "constructor reached for the network (socket.getaddrinfo). Do that in reset()"),
    (checks.construction, ConnectsAndFails, "constructor reached for the network (socket.connect)"),
    (checks.construction, RunsACommand, "constructor started a process (Popen.__init__)"),
    (checks.construction, StartsAProcess, "constructor started a process (BaseProcess.start)"),
    (checks.construction, WaitsForAThread, "started the thread 'first'"),
    (checks.construction, WaitsForAThread, "started the thread 'second'"),
    (checks.construction, StartsAThread, "constructor started the thread 'worker of Count'"),
    (checks.keyword_arguments, SwallowsArguments, "no_such_argument=1) was accepted"),
    (checks.reset, ResetsToText, "Give the tuple (observation, info)"),
    (checks.reset, ResetsToBytes, "reset(seed=None) gave the observation b'7'. Give a string"),
    (checks.reset, ResetsWithoutInfo, "reset(seed=0) gave the info None. Give a dict"),
    (checks.reset, WantsSmallSeeds, "raised ValueError: Seed must be between"),
    (checks.reset, WantsASeed, "raised TypeError"),
    (checks.step, FourParts, "Give the tuple (observation, reward, terminated, truncated, info)"),
    (checks.step, RewardNan, "gave the reward nan. Give a finite float"),
    (checks.step, RewardInfinite, "gave the reward inf. Give a finite float"),
    (checks.step, RewardText, "gave the reward '1'. Give a finite float"),
    (checks.step, RewardBool, "gave the reward True. Give a finite float"),
    (checks.step, RewardArray, "gave the reward array([0.]). Give a finite float"),
    (checks.step, FlagNumber, "gave 1 for terminated. Give a bool"),
    (checks.step, FlagNumpy, "for truncated. Give a bool"),
    (checks.step, ObservationNone, "gave the observation None. Give a string"),
    (checks.step, InfoNone, "gave the info None. Give a dict"),
    (checks.step, RaisesInPlay, "raised KeyError: 'board'"),
    (checks.order, AnswersAlways, "step() before reset() was answered"),
    (checks.order, AnswersAlways, "step() after the end of an episode was answered"),
    (checks.order, AnswersAlways, "reset(no_such_option=1) was accepted"),
    (checks.info, InfoSet, "not JSON (Object of type set is not JSON serializable)"),
    (checks.info, InfoNan, "gave an info that is not JSON"),
    (checks.info, InvalidNumber, "gave info['invalid_action'] = 0. Give a bool"),
    (checks.info, SuffixNone, "gave info['suffix'] = None. Give a str, or leave the key out"),
    (checks.info, InfoReserved, "gave an info with the key 'error', which only the engine sets. Give it another name"),
    (checks.info, InfoGrows, "an info changed in a later turn"),
    (checks.success, SaysNothing, "does not say if the task was solved"),
    (checks.success, SuccessNumber, "does not say if the task was solved"),
    (checks.random_action, SamplesNumbers, "gave 7 in turn 1 of seed 0. Give a string"),
    (checks.random_action, SamplesUnseeded, "Draw from self.rng"),
    (checks.random_action, SamplesInvalid, "which step() called invalid"),
    (checks.expert, ExpertOfNumbers, "which is no string, in turn 1 of seed 0"),
    (checks.expert, InvalidExpert, "which step() called invalid"),
    (checks.expert, LosingExpert, "the expert earned 0.000 an episode, and random play 0."),
    (checks.expert, ExpertByChance, "and then '0."),
    (checks.expert, MeddlingExpert, "expert_action() changed the episode"),
    (checks.form, HidesItsForm, r"does not say '\\boxed{' (seed 0)"),
    (checks.closing, ClosesOnce, "the second close() before the first reset raised IndexError"),
    (checks.closing, ClosesAfterReset, "the first close() before the first reset raised AttributeError"),
    (checks.seeding, IgnoresSeeds, "reset(seed=0) and the same actions gave different episodes"),
    (checks.seeding, IgnoresSeedZero, "reset(seed=0) and the same actions gave different episodes"),
    (checks.seeding, KeepsItsTurn, "gave different episodes on an instance that had played before"),
    (
        checks.seeding,
        ForgetsItsGenerator,
        "reset() after the episode of seed 0 gave different episodes on two instances",
    ),
    (checks.seeding, HashesItsState, "turn 1 gave"),
    (checks.seeds_differ, OneSeedForAll, "different seeds gave the same episode"),
    (checks.global_random, SeedsGlobally, "reset() moved the global random state"),
    (checks.global_random, DrawsGlobally, "step() moved the global random state"),
    (checks.global_random, SamplesGlobally, "sample_random_action() moved the global random state"),
    (checks.global_random, BuildsGlobally, "the constructor moved the global random state"),
    (checks.global_random, ListensGlobally, "random.seed() or numpy.random.seed() outside changed the episode"),
    (checks.own_state, SharesItsNumber, "changed when other instances were played in between"),
    (checks.threads, SharesScratch, "8 instances in threads played other episodes than alone"),
    (checks.threads, NeedsTheMainThread, "signal only works in main thread"),
    (checks.pickling, HoldsALambda, "pickling it before its first reset raised"),
    (checks.pickling, PicklesWithoutGenerator, "a copy pickled in the middle of an episode played on differently"),
    (checks.saved_state, SavesItself, "after the first set_state()"),
    (checks.saved_state, RestoresOnce, "after the second set_state()"),
    (checks.spawning, SpawnsItself, "Give a new environment"),
    (checks.spawning, SpawnsSiamese, "playing a spawned environment changed the one it came from"),
    (checks.spawning, SpawnsOther, "a spawned environment played seed 0 differently"),
    (checks.spawning, SpawnsFresh, "spawn(same_state=True) played on differently"),
    (checks.adversarial, WantsNumbers, "an action made of white space, raised ValueError"),
    (checks.adversarial, TrustsIsdigit, "an action made of digits that int() refuses, raised ValueError"),
    (
        checks.adversarial,
        Echoes,
        "an action made of a lone high surrogate, gave an observation that UTF-8 cannot encode",
    ),
    (checks.adversarial, Evaluates, "an action made of code, was run as Python"),
    (checks.adversarial, RewardsLength, "an action made of deep boxes, gave the reward inf"),
    (checks.adversarial, BreaksLater, "made of nothing, was survived, but the turn after it raised AttributeError"),
    (checks.long, IsSlow, "step() of 1,048,576 characters made of letters took"),
    (checks.long, RaisesWhenLong, "step() of 1,048,576 characters made of letters raised MemoryError"),
]


@pytest.fixture
def register(monkeypatch: pytest.MonkeyPatch) -> Callable[[type[Env]], str]:
    """Makes a class known under an id, to this test only."""
    monkeypatch.setattr("gem_core.registry.manager", PluginManager(discover=list))

    def register(kind: type[Env]) -> str:
        return gem_core.register(f"demo:{kind.__name__}-v0", kind).id

    return register


def problems_of(env_id: str, check: checks.Check) -> str:
    """What a class with this one test would report."""

    class Tests(EnvConformance):
        pass

    Tests.env_id = env_id
    with pytest.raises(ConformanceError) as caught:
        getattr(Tests(), f"test_{check.__name__}")()
    return str(caught.value)


# -- the checks --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", GOOD, ids=lambda kind: kind.__name__)
def test_good_environments_pass(kind: type[Env], register: Callable[[type[Env]], str]) -> None:
    check_env(register(kind))


@pytest.mark.parametrize(("check", "kind", "expected"), BAD, ids=[kind.__name__ for _, kind, _ in BAD])
def test_bad_environments_are_caught(
    check: checks.Check,
    kind: type[Env],
    expected: str,
    register: Callable[[type[Env]], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gem_testing.checks._robustness.STEP_SECONDS", 0.1 if kind is IsSlow else 2.0)
    message = problems_of(register(kind), check)
    assert expected in message
    assert message.startswith(
        f"demo:{kind.__name__}-v0 does not keep the contract of gem_core.Env:\n- {check.__name__}: "
    )


def test_every_check_can_fail() -> None:
    assert {check for check, _, _ in BAD} == set(checks.CHECKS)


def test_every_check_has_a_test_of_the_same_meaning() -> None:
    tests = {name: getattr(EnvConformance, name).__doc__ for name in dir(EnvConformance) if name.startswith("test_")}
    assert tests == {f"test_{check.__name__}": check.__doc__ for check in checks.CHECKS}


def test_a_check_leaves_the_process_as_it_was(register: Callable[[type[Env]], str]) -> None:
    random.seed(3)
    np.random.seed(3)
    check_env(register(Count))
    interval, connect = sys.getswitchinterval(), socket.socket.connect
    assert (random.random(), np.random.rand()) == (random.Random(3).random(), np.random.RandomState(3).rand())
    assert interval > 1e-4
    assert connect.__qualname__ == "socket.connect"
    assert os.system("true") == 0


class MeetsOthers(Count):
    """While it is built, reset and stepped, `work` runs in a thread that was there before."""

    work: ClassVar[Callable[[], None]]
    asked: ClassVar[queue.SimpleQueue[threading.Event | None]]

    def _meet(self) -> None:
        done = threading.Event()
        MeetsOthers.asked.put(done)
        assert done.wait(timeout=240)

    def __init__(self) -> None:
        super().__init__()
        self._meet()

    def reset(self, seed: int | None = None, **options: Any) -> Any:
        self._meet()
        return super().reset(seed=seed)

    def step(self, action: str) -> Any:
        self._meet()
        return super().step(action)


@pytest.fixture
def neighbour() -> Iterator[None]:
    """A thread of somebody else, which does `MeetsOthers.work` whenever that environment is in the middle of a call."""
    asked: queue.SimpleQueue[threading.Event | None] = queue.SimpleQueue()
    MeetsOthers.asked = asked

    def serve() -> None:
        while (done := asked.get()) is not None:
            MeetsOthers.work()
            done.set()

    thread = threading.Thread(target=serve)
    thread.start()
    yield
    asked.put(None)
    thread.join()


@pytest.mark.usefixtures("neighbour")
def test_threads_connections_and_processes_of_others_are_not_the_constructors(
    register: Callable[[type[Env]], str],
) -> None:
    failures: list[BaseException] = []
    worked: list[threading.Thread] = []

    def work() -> None:
        try:
            with socket.create_server(("127.0.0.1", 0)) as server:
                socket.create_connection(server.getsockname(), timeout=60).close()
            subprocess.run([sys.executable, "-c", ""], check=True)
            thread = threading.Thread(target=print, args=("",), kwargs={"end": ""})
            thread.start()
            worked.append(thread)
        except BaseException as error:
            failures.append(error)

    MeetsOthers.work = work
    assert list(checks.construction(Subject(register(MeetsOthers)))) == []
    for thread in worked:
        thread.join()
    assert worked
    assert failures == []


class LeavesGarbage(Count):
    """Makes objects until the garbage collector would have run several times."""

    def __init__(self) -> None:
        super().__init__()
        gc.set_threshold(1, 1, 1)
        self.objects = [[] for _ in range(1000)]


class EndsInAThread:
    """A cycle whose finalizer starts a thread, as a tool does that nobody closed."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        threading.Thread(target=print, args=("",), kwargs={"end": ""}, name="not the constructor's").start()


def test_what_the_garbage_collector_finds_is_not_the_constructors(register: Callable[[type[Env]], str]) -> None:
    subject = Subject(register(LeavesGarbage))
    thresholds = gc.get_threshold()
    gc.set_threshold(10**9)
    try:
        EndsInAThread()
        assert list(checks.construction(subject)) == []
    finally:
        gc.set_threshold(*thresholds)


@pytest.mark.usefixtures("neighbour")
def test_random_numbers_that_others_draw_are_not_the_environments(register: Callable[[type[Env]], str]) -> None:
    drawn = itertools.count(1)

    def work() -> None:
        for _ in range(next(drawn)):
            random.random()
            np.random.rand()

    MeetsOthers.work = work
    assert list(checks.global_random(Subject(register(MeetsOthers)))) == []
    assert next(drawn) > 3


def test_what_a_plugin_builds_elsewhere_need_not_be_importable_here() -> None:
    class Elsewhere:
        @gem_core.hookimpl
        def gem_make_env(self, spec: EnvSpec, kwargs: Any) -> Env:
            return Count()

    isolated = IsolatedPluginManager()
    isolated.add_plugin("far", Elsewhere())
    isolated.enable("far")
    isolated.add("gem_envs", EnvSpec("far:Count-v0", "no_such_module:Count"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gem_core.registry.manager", isolated)
        assert list(checks.construction(Subject("far:Count-v0"))) == []


# -- check_env ---------------------------------------------------------------------------------------------------------


class TwiceWrong(Count):
    def step(self, action: str) -> Any:
        random.random()
        *rest, info = super().step(action)
        return *rest, {**info, "success": "yes"}


def test_all_problems_are_listed_at_once(register: Callable[[type[Env]], str]) -> None:
    with pytest.raises(ConformanceError) as caught:
        check_env(register(TwiceWrong))
    lines = str(caught.value).splitlines()[1:]
    assert all(line.startswith("- ") and line.endswith(".") for line in lines)
    assert [line.split(":")[0] for line in lines] == [
        "- info",
        "- success",
        "- global_random",
        *["- adversarial"] * (len(lines) - 3),
    ]


def test_without_the_basics_the_rest_is_left_out(register: Callable[[type[Env]], str]) -> None:
    with pytest.raises(ConformanceError) as caught:
        check_env(register(RaisesInPlay))
    assert str(caught.value).splitlines()[1:] == ["- step: raised KeyError: 'board'"]
    assert isinstance(caught.value.__cause__, KeyError)


def test_arguments_reach_the_environment(register: Callable[[type[Env]], str]) -> None:
    env_id = register(Count)
    check_env(env_id, turns=1)
    with pytest.raises(ConformanceError, match=r"raised EnvKwargsError: .* no argument 'turn' .* Did you mean 'turns'"):
        check_env(env_id, turn=1)


def test_an_unknown_id_is_the_callers_mistake() -> None:
    with pytest.raises(NotFoundError, match="Did you mean 'game:Corridor-v0'"):
        check_env("game:Coridor-v0")


# -- the pytest plugin -------------------------------------------------------------------------------------------------


class Offers:
    """A plugin with one environment."""

    @gem_core.hookimpl
    def gem_envs(self) -> list[EnvSpec]:
        return [EnvSpec("demo:Count-v0", Count)]


def test_the_manager_refuses_to_read_what_is_installed(gem_plugin_manager: IsolatedPluginManager) -> None:
    with pytest.raises(PluginError, match=r"never reads the installed distributions.*add_plugin\(namespace, module\)"):
        gem_plugin_manager.plugins()


def test_a_plugin_added_is_found_like_an_installed_one(gem_plugin_manager: IsolatedPluginManager) -> None:
    gem_plugin_manager.add_plugin("demo", Offers(), distribution="demo-envs", version="2.1")
    registration = gem_plugin_manager.find("gem_envs", "demo:Count-v0")
    assert registration is not None
    assert str(registration.provenance) == "demo-envs 2.1 (plugin 'demo')"


def test_a_module_is_imported_only_when_its_namespace_is_asked_for(gem_plugin_manager: IsolatedPluginManager) -> None:
    gem_plugin_manager.add_plugin("demo", Offers())
    gem_plugin_manager.add_plugin("absent", "no_such_module_anywhere")
    assert gem_plugin_manager.find("gem_envs", "demo:Count-v0") is not None
    assert [(plugin.name, plugin.status) for plugin in gem_plugin_manager.plugins()] == [
        ("absent", "not loaded"),
        ("demo", "ok"),
    ]
    [broken] = gem_plugin_manager.load("absent")
    assert broken.status == "broken"
    assert "no_such_module_anywhere" in str(broken.error)


def test_two_distributions_can_be_played_off_against_each_other(gem_plugin_manager: IsolatedPluginManager) -> None:
    gem_plugin_manager.add_plugin("demo", Offers(), distribution="one")
    gem_plugin_manager.add_plugin("demo", Offers(), distribution="two")
    with pytest.raises(DuplicateIdError, match=r"one 1\.0 .* and two 1\.0"):
        gem_plugin_manager.find("gem_envs", "demo:Count-v0")


def test_a_plugin_added_too_late_is_an_error(gem_plugin_manager: IsolatedPluginManager) -> None:
    gem_plugin_manager.add_plugin("demo", Offers())
    gem_plugin_manager.plugins()
    with pytest.raises(PluginError, match="'late' comes too late"):
        gem_plugin_manager.add_plugin("late", Offers())


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import gem_testing", "pytest numpy pluggy gem_core.plugins gem_testing.checks"),
        ("from gem_testing import check_env, EnvConformance", "pytest numpy"),
        ("import gem_testing.fixtures", "numpy gem_core.plugins gem_testing._plugins gem_testing.checks"),
    ],
)
def test_importing_the_kit_is_cheap(statement: str, absent: str) -> None:
    """The pytest plugin is loaded in every test run of whoever installs gem-core."""
    code = f"{statement}; import sys; sys.exit(' '.join(set({absent.split()}) & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=240, check=False)
    assert result.stderr == "\n"
