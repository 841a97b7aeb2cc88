"""Vectors: the same episodes everywhere, with and without autoreset, and failures that cost only themselves."""

from __future__ import annotations

import itertools
import logging
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import pytest

import gem_core
from gem_core import Env, make_vec
from gem_core.errors import ClosedError, EnvError, EnvFailure, EnvKwargsError, NotFoundError
from gem_core.seeding import derive_seed
from gem_core.vector import VectorEnv
from gem_core.wrappers import TurnLimit
from gem_support.vector_envs import (
    SEED,
    Walk,
    action,
    alone,
    children,
    env_threads,
    make,
    play,
    receive_interrupted,
    seed_of,
)
from gem_support.waiting import wait_until

BACKENDS = ["sync", "thread", "process"]
backends = pytest.mark.parametrize("backend", BACKENDS)


class Fragile(Walk):
    """A walk that does something forbidden in the episodes with the seeds given."""

    made: ClassVar[int] = 0
    closed: ClassVar[int] = 0

    def __init__(self, bad_seeds: Sequence[int] = (), how: str = "step", longest: int = 4) -> None:
        super().__init__(longest)
        self.bad_seeds, self.how = tuple(bad_seeds), how
        self.bad = False
        Fragile.made += 1

    def reset(self, seed: int | None = None, **options: Any) -> Any:
        self.bad = seed in self.bad_seeds
        if self.bad and self.how in _BAD_RESETS:
            return _BAD_RESETS[self.how]()
        return super().reset(seed=seed)

    def step(self, action: str) -> Any:
        return _BAD_STEPS[self.how]() if self.bad else super().step(action)

    def close(self) -> None:
        Fragile.closed += 1
        if self.bad:
            raise OSError("close() fails as well")


def _raise(error: BaseException) -> Any:
    raise error


_BAD_RESETS: dict[str, Callable[[], Any]] = {
    "reset": lambda: _raise(OSError("no level")),
    "reset gives text only": lambda: "start",
    "reset gives no text": lambda: (None, {}),
    "reset gives no info": lambda: ("start", None),
    "reset gives three": lambda: ("start", {}, {}),
}
_BAD_STEPS: dict[str, Callable[[], Any]] = {
    "step": lambda: _raise(OSError("gone")),
    "step gives nothing": lambda: None,
    "step gives four": lambda: ("", 0.0, False, {}),
    "step gives no number": lambda: ("", "much", False, False, {}),
    "step gives no reward": lambda: ("", None, False, False, {}),
    "step gives nan": lambda: ("", float("nan"), False, False, {}),
    "step gives infinity": lambda: ("", float("inf"), False, False, {}),
    "step gives bytes": lambda: (b"", 0.0, False, False, {}),
    "step gives no info": lambda: ("", 0.0, False, False, None),
    "step gives a number": lambda: 7,
}


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    gem_core.register("demo-vector:Walk-v0", Walk)
    gem_core.register("demo-vector:Long-v0", Walk, kwargs={"longest": 40})
    gem_core.register("demo-vector:Fragile-v0", Fragile)
    Fragile.made = Fragile.closed = 0
    yield
    wait_until(lambda: not env_threads())
    assert not children()


# -- seeds -------------------------------------------------------------------------------------------------------------


@backends
@pytest.mark.parametrize("width", [1, 3, 8])
def test_the_same_episodes_alone_and_in_any_vector(backend: str, width: int) -> None:
    with make("demo-vector:Walk-v0", width, backend) as vec:
        episodes = play(vec, 12)
    for index, played in enumerate(episodes):
        assert len(played) >= 3
        assert played == [alone(seed_of(index, number, width)) for number in range(len(played))]


@backends
def test_members_of_a_group_share_their_seeds(backend: str) -> None:
    with make("demo-vector:Walk-v0", 6, backend, group_size=3) as vec:
        episodes = play(vec, 8)
    assert episodes[0] == episodes[1] == episodes[2] != episodes[3] == episodes[4] == episodes[5]
    assert episodes[3][0] == alone(derive_seed(SEED, 1))


@pytest.mark.parametrize(
    ("backend", "how"),
    [
        *itertools.product(["sync", "thread"], [*_BAD_RESETS, *_BAD_STEPS]),
        *itertools.product(["process"], ["reset", "step", "step gives bytes"]),
    ],
)
def test_a_neighbour_s_failure_changes_nothing(backend: str, how: str) -> None:
    bad = [seed_of(1, 0, 3), seed_of(1, 2, 3)]
    kwargs = {"bad_seeds": bad, "how": how}
    with make("demo-vector:Fragile-v0", 3, backend, env_kwargs=kwargs) as vec:
        episodes = play(vec, 12)
    for index in (0, 2):
        assert episodes[index] == [alone(seed_of(index, number, 3)) for number in range(len(episodes[index]))]
    failed, healthy = episodes[1][0::2][:2], episodes[1][1]
    assert healthy == alone(seed_of(1, 1, 3))
    for _, turns in failed:
        assert turns[-1] == ("", 0.0, False, True)


def test_infos_name_the_episode_and_its_seed() -> None:
    with make_vec("demo-vector:Walk-v0", 2, seed=SEED) as vec:
        _, infos = vec.reset()
        assert [(info["seed"], info["episode"]) for info in infos] == [
            (derive_seed(SEED, 0), 0),
            (derive_seed(SEED, 1), 0),
        ]
        _, [info] = vec.reset(slots=[1])
        assert (info["seed"], info["episode"]) == (seed_of(1, 1, 2), 1)
        _, infos = vec.reset(seed=99)
        assert [(info["seed"], info["episode"]) for info in infos] == [
            (derive_seed(99, 0), 0),
            (derive_seed(99, 1), 0),
        ]


def test_no_seed_draws_one() -> None:
    openings = set()
    for _ in range(3):
        with make_vec("demo-vector:Walk-v0", seed=None) as vec:
            openings.add(vec.reset()[0][0])
    assert len(openings) == 3


# -- autoreset ---------------------------------------------------------------------------------------------------------


def until_done(vec: VectorEnv) -> tuple[str, float, bool, bool, dict[str, Any]]:
    """The transition that ends the episode of environment 0."""
    for turn in range(100):
        answers = vec.step({0: action(turn)})
        if answers[2][0] or answers[3][0]:
            return tuple(column[0] for column in answers)  # type: ignore[return-value]
    raise AssertionError("the episode did not end")


@backends
def test_same_step_shows_the_next_episode_and_keeps_the_last_words(backend: str) -> None:
    first, second = (alone(derive_seed(SEED, number)) for number in (0, 1))
    with make("demo-vector:Walk-v0", backend=backend, autoreset="same_step", seed=SEED) as vec:
        vec.reset()
        observation, reward, terminated, truncated, info = until_done(vec)
        assert (info["final_observation"], reward, terminated, truncated) == first[1][-1]
        assert info["final_info"] == {"left": 0, "success": True}
        assert observation == second[0]
        assert (info["seed"], info["episode"]) == (derive_seed(SEED, 1), 1)
        assert "success" not in info
        assert vec.step([action(0)])[0] == ([second[1][0][0]] if len(second[1]) > 1 else [alone_opening(2)])


def alone_opening(number: int) -> str:
    return alone(derive_seed(SEED, number))[0]


@backends
def test_disabled_waits_for_a_reset(backend: str) -> None:
    first, second = (alone(derive_seed(SEED, number)) for number in (0, 1))
    with make("demo-vector:Walk-v0", backend=backend, autoreset="disabled", seed=SEED) as vec:
        vec.reset()
        observation, reward, terminated, truncated, _ = until_done(vec)
        assert (observation, reward, terminated, truncated) == first[1][-1]
        for _ in range(2):
            _, [reward], [terminated], [truncated], [info] = vec.step(["a"])
            assert (reward, terminated, truncated) == (0.0, False, True)
            assert info["error"] == "stepped after its episode ended; reset it first"
        [observation], _ = vec.reset(slots=[0])
        assert observation == second[0]
        assert vec.step([action(0)])[0] == [second[1][0][0]]


@pytest.mark.parametrize("autoreset", ["same_step", "disabled"])
def test_stepping_before_the_first_reset_is_an_error_in_the_info(autoreset: str) -> None:
    with make_vec("demo-vector:Walk-v0", autoreset=autoreset, seed=SEED) as vec:
        _, _, _, [truncated], [info] = vec.step(["a"])
        assert truncated
        assert info["error"] == "stepped before its first reset; reset it first"


def test_a_truncation_autoresets_as_a_termination_does() -> None:
    wrappers = [lambda env: TurnLimit(env, 1)]
    with make_vec("demo-vector:Long-v0", seed=SEED, wrappers=wrappers) as vec:
        vec.reset()
        [observation], _, [terminated], [truncated], [info] = vec.step(["a"])
        assert (terminated, truncated) == (False, True)
        assert observation.startswith("start")
        assert info["final_observation"].startswith("a ")
        assert info["episode"] == 1


# -- failures ----------------------------------------------------------------------------------------------------------


@backends
def test_a_failing_step_ends_its_episode_with_the_error(backend: str) -> None:
    kwargs = {"bad_seeds": [derive_seed(SEED, 0)]}
    with make("demo-vector:Fragile-v0", backend=backend, seed=SEED, env_kwargs=kwargs) as vec:
        vec.reset()
        [observation], [reward], [terminated], [truncated], [info] = vec.step(["a"])
        assert (reward, terminated, truncated) == (0.0, False, True)
        assert info["final_info"] == {"error": "OSError: gone"}
        assert info["final_observation"] == ""
        assert "error" not in info
        assert observation == alone_opening(1)


def test_a_failing_step_without_autoreset() -> None:
    kwargs = {"bad_seeds": [derive_seed(SEED, 0)]}
    with make_vec("demo-vector:Fragile-v0", autoreset="disabled", seed=SEED, env_kwargs=kwargs) as vec:
        vec.reset()
        assert [list(one) for one in vec.step(["a"])] == [[""], [0.0], [False], [True], [{"error": "OSError: gone"}]]
        [observation] = vec.reset(slots=[0])[0]
        assert observation == alone_opening(1)


@backends
@pytest.mark.parametrize("autoreset", ["same_step", "disabled"])
def test_a_failing_reset_shows_its_error_and_its_first_step_ends_it(backend: str, autoreset: str) -> None:
    kwargs = {"bad_seeds": [derive_seed(SEED, 0)], "how": "reset"}
    with make("demo-vector:Fragile-v0", backend=backend, autoreset=autoreset, seed=SEED, env_kwargs=kwargs) as vec:
        [observation], [info] = vec.reset()
        assert observation == ""
        assert info == {"error": "OSError: no level", "seed": derive_seed(SEED, 0), "episode": 0}
        _, [reward], [terminated], [truncated], [info] = vec.step(["a"])
        assert (reward, terminated, truncated) == (0.0, False, True)
        assert info.get("final_info", info) == {"error": "OSError: no level"}


def test_a_failed_environment_is_closed_and_built_anew() -> None:
    kwargs = {"bad_seeds": [derive_seed(SEED, number) for number in range(3)]}
    with make_vec("demo-vector:Fragile-v0", seed=SEED, env_kwargs=kwargs) as vec:
        made, closed = Fragile.made, Fragile.closed
        vec.reset()
        for _ in range(3):
            vec.step(["a"])
        assert (Fragile.made - made, Fragile.closed - closed) == (4, 3)
    assert Fragile.made == Fragile.closed


@backends
def test_a_constructor_that_fails_later_is_a_failed_episode(backend: str) -> None:
    built: list[int] = []

    def build() -> Env:
        built.append(1)
        if len(built) in (2, 3):  # the first is make_vec's probe
            raise OSError("no licence left")
        return Walk()

    gem_core.register("demo-vector:Licensed-v0", build)
    with make("demo-vector:Licensed-v0", backend=backend, seed=SEED) as vec:
        _, [info] = vec.reset()
        assert "no licence left" in info["error"]
        _, _, _, [truncated], [info] = vec.step(["a"])
        assert truncated
        assert "no licence left" in info["final_info"]["error"]
        assert "no licence left" in info["error"]  # the next reset failed too
        [observation], _, _, _, [info] = vec.step(["a"])
        assert observation == alone_opening(2)
        assert "error" not in info


def test_an_info_that_the_environment_goes_on_changing_is_not_shared() -> None:
    class Reuses(Walk):
        def __init__(self) -> None:
            super().__init__()
            self.info: dict[str, Any] = {}

        def step(self, action: str) -> Any:
            observation, reward, _, _, _ = super().step(action)
            self.info["action"] = action
            return observation, reward, False, False, self.info

    gem_core.register("demo-vector:Reuses-v0", Reuses)
    with make_vec("demo-vector:Reuses-v0", seed=SEED) as vec:
        vec.reset()
        infos = [vec.step([text])[4][0] for text in "abc"]
    assert [info["action"] for info in infos] == ["a", "b", "c"]


@pytest.mark.parametrize("backend", ["sync", "thread"])
def test_what_an_info_contains_is_not_shared(backend: str) -> None:
    class Grows(Walk):
        def reset(self, seed: int | None = None, **options: Any) -> Any:
            self.said: dict[str, Any] = {"by turn": [], "pair": ([],)}
            return super().reset(seed=seed)[0], self.said

        def step(self, action: str) -> Any:
            self.said["by turn"].append(action)
            self.said["pair"][0].append(action)
            return "", 0.0, False, False, {"said": self.said}

    gem_core.register("demo-vector:Grows-v0", Grows)
    with make_vec("demo-vector:Grows-v0", seed=SEED, backend=backend) as vec:
        _, [opening] = vec.reset()
        infos = [vec.step([text])[4][0]["said"] for text in "ab"]
    assert (opening["by turn"], opening["pair"]) == ([], ([],))
    assert infos == [{"by turn": ["a"], "pair": (["a"],)}, {"by turn": ["a", "b"], "pair": (["a", "b"],)}]


def test_numbers_and_flags_may_come_from_arrays() -> None:
    numpy = pytest.importorskip("numpy")

    class Arrays(Walk):
        def step(self, action: str) -> Any:
            return "x", numpy.float32(0.5), numpy.bool_(True), numpy.bool_(False), {}

    gem_core.register("demo-vector:Arrays-v0", Arrays)
    with make_vec("demo-vector:Arrays-v0", seed=SEED) as vec:
        vec.reset()
        vec.send({0: "a"})
        turn = vec.recv()[0]
        assert [type(one) for one in turn[1:4]] == [float, bool, bool]
        assert turn[1:4] == (0.5, True, False)
        _, rewards, terminated, truncated, _ = vec.step(["a"])
        assert [one.dtype.name for one in (rewards, terminated, truncated)] == ["float64", "bool", "bool"]


# -- some of them ------------------------------------------------------------------------------------------------------


@backends
def test_a_mapping_steps_those_it_names_in_its_order(backend: str) -> None:
    with (
        make("demo-vector:Long-v0", 4, backend) as vec,
        make_vec("demo-vector:Long-v0", 4, seed=SEED) as other,
    ):
        vec.reset()
        other.reset()
        everyone = other.step(["a", "b", "c", "d"])[0]
        assert vec.step({2: "c", 0: "a"})[0] == [everyone[2], everyone[0]]
        assert vec.step({1: "b", 3: "d"})[0] == [everyone[1], everyone[3]]
        assert [len(one) for one in vec.step({})] == [0] * 5


@backends
def test_a_partial_reset_leaves_the_others_alone(backend: str) -> None:
    with make("demo-vector:Long-v0", 3, backend) as vec:
        vec.reset()
        observations, infos = vec.reset(slots=[2, 0])
        assert [info["episode"] for info in infos] == [1, 1]
        assert [info["seed"] for info in infos] == [seed_of(2, 1, 3), seed_of(0, 1, 3)]
        assert len(observations) == 2
        assert vec.reset(slots=[]) == ([], [])
        assert vec.reset(slots=[1])[1][0]["episode"] == 1


class Gate(Env):
    """Steps named `wait` last until the gate is opened."""

    opened: ClassVar[threading.Event] = threading.Event()
    closed_in: ClassVar[list[str]] = []

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        return "", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        if action == "wait":
            assert Gate.opened.wait(120)
        return action, 0.0, False, False, {}

    def sample_random_action(self) -> str:
        return "go"

    def close(self) -> None:
        Gate.closed_in.append(threading.current_thread().name)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    gem_core.register("demo-vector:Gate-v0", Gate)
    Gate.opened = threading.Event()
    Gate.closed_in.clear()
    yield Gate.opened
    Gate.opened.set()


def test_a_slow_environment_holds_up_nobody(gate: threading.Event) -> None:
    with make_vec("demo-vector:Gate-v0", 3, backend="thread", seed=SEED) as vec:
        vec.reset()
        vec.send({0: "wait", 1: "go", 2: "go"})
        ready = vec.recv(at_least=2)
        assert set(ready) == {1, 2}
        assert ready[1].observation == "go"
        for again in range(3):
            vec.send({1: f"again {again}"})
            assert {index: one.observation for index, one in vec.recv().items()} == {1: f"again {again}"}
        for misuse in (lambda: vec.step(["go"] * 3), vec.reset, lambda: vec.step({1: "go"})):
            with pytest.raises(ValueError, match="under way"):
                misuse()
        with pytest.raises(ValueError, match=r"\[0\] are still at work"):
            vec.send({0: "go"})
        with pytest.raises(ValueError, match=r"at_least=2.*1 turns"):
            vec.recv(at_least=2)
        gate.set()
        assert vec.recv()[0].observation == "wait"
        assert vec.step(["go"] * 3)[0] == ["go"] * 3


@backends
def test_nothing_sent_is_nothing_to_receive(backend: str) -> None:
    with make("demo-vector:Walk-v0", 2, backend) as vec:
        vec.reset()
        with pytest.raises(ValueError, match=r"at_least=1.*0 turns"):
            vec.recv()
        vec.send({1: "a"})
        assert set(vec.recv()) == {1}


# -- misuse ------------------------------------------------------------------------------------------------------------


@backends
def test_misuse_is_named(backend: str) -> None:
    with make("demo-vector:Walk-v0", 2, backend) as vec:
        vec.reset()
        with pytest.raises(ValueError, match="3 actions for 2 environments"):
            vec.step(["a", "b", "c"])
        for index in (2, -1):
            with pytest.raises(ValueError, match=rf"no slots \[{index}\]; there are 2"):
                vec.step({index: "a"})
            with pytest.raises(ValueError, match="there are 2"):
                vec.reset(slots=[index])
        with pytest.raises(ValueError, match="named twice"):
            vec.reset(slots=[1, 1])
        # None of it did anything.
        assert len(vec.step(["a", "b"])[0]) == 2


@backends
def test_a_text_is_no_list_of_actions(backend: str) -> None:
    with make("demo-vector:Walk-v0", 2, backend) as vec:
        vec.reset()
        with pytest.raises((TypeError, ValueError), match="'ab'"):
            vec.step("ab")


@backends
def test_a_closed_vector_refuses_everything_and_closes_again(backend: str) -> None:
    vec = make("demo-vector:Fragile-v0", 2, backend)
    vec.reset()
    closed = Fragile.closed
    vec.close()
    vec.close()
    assert Fragile.closed - closed == (2 if backend != "process" else 0)
    for misuse in (vec.reset, vec.recv, lambda: vec.step(["a", "b"]), lambda: vec.send({0: "a"})):
        with pytest.raises(ClosedError, match="closed"):
            misuse()
    assert "closed" in repr(vec)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_envs": 0}, "0 environments"),
        ({"num_envs": 3, "group_size": 2}, "groups of 2"),
        ({"num_envs": 2, "group_size": 0}, "groups of 0"),
        ({"env_ids": []}, "no environment id"),
        ({"backend": "threads"}, "Did you mean 'thread'"),
        ({"workers": 4}, "workers=4 has no effect"),
        ({"autoreset": "sometimes"}, "sometimes"),
    ],
)
def test_vectors_that_cannot_work_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_vec(**{"env_ids": "demo-vector:Walk-v0", **arguments})


def test_mistakes_in_ids_and_arguments_show_at_once() -> None:
    with pytest.raises(NotFoundError):
        make_vec("demo-vector:Wolk-v0", 4)
    with pytest.raises(EnvKwargsError, match="Did you mean 'longest'"):
        make_vec("demo-vector:Walk-v0", 4, env_kwargs={"longst": 4})
    gem_core.register("demo-vector:Never-v0", lambda: _raise(OSError("cannot build")))
    with pytest.raises(EnvError, match="cannot build"):
        make_vec("demo-vector:Never-v0", 4)


def test_several_ids_take_turns_by_group() -> None:
    ids = ["demo-vector:Walk-v0", "demo-vector:Long-v0"]
    with make_vec(ids, seed=SEED) as vec:
        assert vec.env_ids == tuple(ids)
    with make_vec(ids, 6, group_size=2, seed=SEED) as vec:
        assert vec.env_ids == (ids[0], ids[0], ids[1], ids[1], ids[0], ids[0])


def test_arguments_and_wrappers_reach_every_environment() -> None:
    wrappers = [lambda env: TurnLimit(env, 9), lambda env: TurnLimit(env, 2)]
    arguments: Any = {"env_kwargs": {"longest": 40}, "wrappers": wrappers}
    with make_vec("demo-vector:Walk-v0", 8, seed=SEED, **arguments) as vec:
        _, infos = vec.reset()
        assert max(info["left"] for info in infos) > 4
        vec.step(["a"] * 8)
        _, _, terminated, truncated, _ = vec.step(["a"] * 8)
        assert sum(truncated) + sum(terminated) >= 7


# -- threads -----------------------------------------------------------------------------------------------------------


class Meeting(Env):
    """Waits in each call until as many environments as given are in one."""

    meetings: ClassVar[dict[int, threading.Barrier]] = {size: threading.Barrier(size, timeout=240) for size in (2, 32)}

    def __init__(self, size: int) -> None:
        self.size = size

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        self.meetings[self.size].wait()
        return "", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.meetings[self.size].wait()
        return action, 0.0, False, False, {}

    def sample_random_action(self) -> str:
        return ""


@pytest.mark.usefixtures("patient_close")
@pytest.mark.parametrize(("count", "workers"), [(32, None), (6, 2)])
def test_threads_overlap_blocking_calls_and_are_gone_after_close(count: int, workers: int | None) -> None:
    gem_core.register("demo-vector:Meeting-v0", Meeting)
    threads = workers or count
    kwargs = {"size": threads}
    vec = make_vec("demo-vector:Meeting-v0", count, backend="thread", workers=workers, seed=SEED, env_kwargs=kwargs)
    vec.reset()
    actions = [str(number) for number in range(count)]
    assert vec.step(actions)[0] == actions
    assert len(env_threads()) == threads
    vec.close()
    assert not env_threads()


@pytest.mark.usefixtures("patient_close")
def test_close_waits_for_a_step_under_way_and_closes_everything(gate: threading.Event) -> None:
    vec = make_vec("demo-vector:Gate-v0", 3, backend="thread", seed=SEED)
    vec.reset()
    vec.send({0: "wait", 1: "go"})
    vec.recv()
    Gate.closed_in.clear()
    threading.Timer(0.1, gate.set).start()
    vec.close()
    assert len(Gate.closed_in) == 3
    assert not env_threads()


def test_an_interruption_reaches_the_caller_who_can_go_on() -> None:
    class Interrupted(Walk):
        interrupted = False

        def step(self, action: str) -> Any:
            if action == "stop" and not Interrupted.interrupted:
                Interrupted.interrupted = True  # as Ctrl-C would, once
                raise KeyboardInterrupt
            return super().step(action)

    gem_core.register("demo-vector:Interrupted-v0", Interrupted)
    with make_vec("demo-vector:Interrupted-v0", 3, seed=SEED) as vec:
        vec.reset()
        with pytest.raises(KeyboardInterrupt):
            vec.step(["a", "stop", "c"])
        assert set(vec.recv(at_least=3)) == {0, 1, 2}
        Interrupted.interrupted = False
        with pytest.raises(KeyboardInterrupt):
            vec.step(["a", "stop", "c"])
        vec.drain()
        vec.reset()
        assert len(vec.step(["a", "b", "c"])[0]) == 3


def test_an_interruption_loses_no_result(gate: threading.Event) -> None:
    with make_vec("demo-vector:Gate-v0", 2, backend="thread", seed=SEED) as vec:
        vec.reset()
        vec.send({0: "go", 1: "wait"})
        with pytest.raises(KeyboardInterrupt):
            receive_interrupted(vec, 2)
        gate.set()
        assert {index: one.observation for index, one in vec.recv(at_least=2).items()} == {0: "go", 1: "wait"}


def test_an_interruption_before_results_are_taken_loses_none(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def interrupted() -> Iterator[None]:
        monkeypatch.undo()
        raise KeyboardInterrupt
        yield

    with make_vec("demo-vector:Walk-v0", 2, backend="thread", seed=SEED) as vec:
        vec.reset()
        vec.send({0: "a", 1: "b"})
        monkeypatch.setattr("gem_core.vector._thread.uninterrupted", interrupted)
        with pytest.raises(KeyboardInterrupt):
            vec.recv(at_least=2)
        assert set(vec.recv(at_least=2)) == {0, 1}


def test_draining_waits_for_what_is_under_way_and_forgets_it(gate: threading.Event) -> None:
    with make_vec("demo-vector:Gate-v0", 2, backend="thread", seed=SEED) as vec:
        vec.drain()
        vec.reset()
        vec.send({0: "go", 1: "wait"})
        threading.Timer(0.1, gate.set).start()
        vec.drain()
        assert gate.is_set()
        assert vec.step(["x", "y"])[0] == ["x", "y"]
    with pytest.raises(ClosedError):
        vec.drain()


@backends
@pytest.mark.parametrize("how", ["reset", "step", "close"])
def test_an_environment_that_exits_has_failed(backend: str, how: str) -> None:
    class Exits(Walk):
        built = 0

        def __init__(self) -> None:
            super().__init__()
            Exits.built += 1
            self.quits = Exits.built > 1  # the first one is make_vec's own

        def reset(self, seed: int | None = None, **options: Any) -> Any:
            return sys.exit(3) if how == "reset" else super().reset(seed)

        def step(self, action: str) -> Any:
            return sys.exit(3) if how == "step" else _raise(OSError("gone"))

        def close(self) -> None:
            if self.quits:
                sys.exit(4)

    gem_core.register("demo-vector:Exits-v0", Exits)
    with make("demo-vector:Exits-v0", 2, backend, autoreset="disabled") as vec:
        vec.reset()
        errors = [info["error"] for info in vec.step(["a", "b"])[4]]
    assert errors == ["OSError: gone" if how == "close" else "SystemExit: 3"] * 2
    if how == "close":
        Exits.built = 1
        with pytest.raises(EnvFailure, match=r"Exits-v0 failed: close\(\) raised SystemExit: 4"):
            make_vec("demo-vector:Exits-v0")


def test_the_first_failure_of_each_kind_is_a_warning_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Walk):
        def step(self, action: str) -> Any:
            if action == "a":
                raise OSError("gone")
            raise OSError("elsewhere")

    for name in ("One", "Other"):
        gem_core.register(f"demo-vector:Broken{name}-v0", Broken)
    with caplog.at_level(logging.DEBUG, "gem_core.vector"):
        for env_id in ("demo-vector:BrokenOne-v0", "demo-vector:BrokenOther-v0"):
            with make_vec(env_id, 2, seed=SEED) as vec:
                vec.reset()
                for action in "aba":
                    vec.step([action] * 2)
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert [(str(record.args[0])[12:-3], str(record.args[1])) for record in warnings] == [
        ("BrokenOne", "OSError: gone"),
        ("BrokenOne", "OSError: elsewhere"),
        ("BrokenOther", "OSError: gone"),
        ("BrokenOther", "OSError: elsewhere"),
    ]
    assert len(caplog.records) == 12
    assert all(record.exc_info is None and "in step" in record.getMessage() for record in warnings)


@backends
def test_the_engine_s_keys_in_an_environment_s_info_are_renamed(backend: str) -> None:
    class Talkative(Walk):
        info: ClassVar[dict[str, Any]] = {"error": "bad move", "seed": 1, "episode": 2, "final_info": {}, "other": 3}

        def reset(self, seed: int | None = None, **options: Any) -> Any:
            return super().reset(seed)[0], self.info

        def step(self, action: str) -> Any:
            return "", 0.0, action == "end", False, self.info

    renamed = {"env_error": "bad move", "env_seed": 1, "env_episode": 2, "env_final_info": {}, "other": 3}
    gem_core.register("demo-vector:Talkative-v0", Talkative)
    with make("demo-vector:Talkative-v0", backend=backend, seed=SEED) as vec:
        first = {"seed": derive_seed(SEED, 0), "episode": 0}
        assert vec.reset()[1] == [{**renamed, **first}]
        assert vec.step(["go"])[4] == [renamed]
        assert vec.step(["end"])[4][0]["final_info"] == renamed
