"""Workers: what travels to them and back, waiting for them, and that nothing of them is left behind."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import gem_core
from gem_core import Env
from gem_core.errors import ClosedError, EnvError
from gem_core.failures import FailurePolicy
from gem_core.plugins import PluginManager
from gem_core.seeding import derive_seed
from gem_core.vector import Task, VectorEnv
from gem_support.processes import processes_with
from gem_support.vector_envs import (
    SEED,
    Walk,
    action,
    alive,
    alone,
    children,
    env_threads,
    gone_soon,
    is_killed,
    keeps_the_lock,
    make,
    noted,
    play,
    receive_interrupted,
    run_script,
    seed_of,
)
from gem_support.waiting import SECONDS, wait_until

BIG = 5_000_000
pooled = pytest.mark.parametrize("backend", ["thread", "process"])
patient = FailurePolicy(max_failure_share=None)


class Told(Walk):
    """Does what the action says."""

    def step(self, action: str) -> Any:
        what, _, about = action.partition(" ")
        return TOLD.get(what, Told.walk)(self, about)

    def walk(self, about: str) -> Any:
        return f"{about} {self.rng.random()}", 0.0, False, False, {}


def _answer(observation: str = "", info: Any = None, done: bool = False) -> Any:
    return observation, 0.0, done, False, info or {}


def _wait_for(env: Env, path: str) -> Any:
    """Wait until there is such a file."""
    wait_until(Path(path).exists)
    return _answer("waited")


def _starts_child(env: Env, path: str) -> Any:
    child = subprocess.Popen(["sleep", "300"])
    Path(path).write_text(f"{child.pid}\n")
    return _answer()


def _forks(env: Env, path: str) -> Any:
    """A forked process that lives on."""
    pid = os.fork()
    if pid == 0:
        time.sleep(300)
        os._exit(0)
    Path(path).write_text(f"{pid}\n")
    return _answer()


def _forks_and_exits(env: Env, about: str) -> Any:
    """A forked process that ends as a script does, by an exception that a member turns into a failure."""
    pid = os.fork()
    if pid == 0:
        sys.exit(0)
    os.waitpid(pid, 0)
    return _answer("forked")


class Awkward(Exception):
    """As many exceptions, it can be pickled but not unpickled."""

    def __init__(self, one: str, other: str) -> None:
        super().__init__(one)


class Text(str):
    """A text of a class of its own, which cannot be pickled."""

    def __reduce__(self) -> Any:
        raise TypeError("no")


TOLD: dict[str, Callable[[Any, str], Any]] = {
    "big": lambda env, about: _answer("x" * BIG + str(len(about))),
    "print": lambda env, about: (print(about), _answer("printed"))[1],
    "wait": _wait_for,
    "child": _starts_child,
    "fork": _forks,
    "fork-exit": _forks_and_exits,
    "end": lambda env, about: _answer("", {}, True),
    "die": lambda env, about: is_killed(),
    "hang": lambda env, about: keeps_the_lock(),
    "disconnect": lambda env, about: (os.closerange(3, 256), time.sleep(60)),
    "lambda": lambda env, about: _answer("", {"f": lambda: 1}, about == "end"),
    "lock": lambda env, about: _answer("", {"f": [threading.Lock()]}, about == "end"),
    "awkward": lambda env, about: _answer("", {"f": Awkward("a", "b")}, about == "end"),
    "key": lambda env, about: _answer("", {Awkward("a", "b"): 1}, about == "end"),
    "text": lambda env, about: _answer(Text("subclass")),
    "rich": lambda env, about: _answer("", {"path": Path("a"), "list": [1, {"b": (2,)}], "set": {3}}),
    "pid": lambda env, about: _answer(str(os.getpid())),
}


@pytest.fixture(autouse=True)
def _registered() -> Iterator[None]:
    gem_core.register("demo-process:Walk-v0", Walk)
    gem_core.register("demo-process:Told-v0", Told)
    yield
    wait_until(lambda: not env_threads())
    assert not children()


def told(width: int = 2, backend: str = "process", **settings: Any) -> VectorEnv:
    """A vector of obedient environments, reset."""
    vec = make("demo-process:Told-v0", width, backend, **{"failures": patient, **settings})
    vec.reset()
    return vec


# -- what travels ----------------------------------------------------------------------------------------------------


@pooled
def test_big_texts_go_both_ways_at_once(backend: str) -> None:
    with told(4, backend) as vec:
        for _ in range(3):
            observations = vec.step([f"big {'y' * BIG}"] * 4)[0]
            assert [len(one) for one in observations] == [BIG + len(str(BIG))] * 4
            assert all(one.endswith(f"x{BIG}") for one in observations)
        vec.send({0: f"big {'y' * BIG}", 1: "big"})
        assert vec.recv(at_least=1, timeout=0).keys() <= {0, 1}
        vec.drain()
        vec.send({0: f"big {'y' * BIG}"})  # and closed while it is under way


@pytest.mark.parametrize("autoreset", ["same_step", "disabled"])
@pytest.mark.parametrize("what", ["lambda", "lock", "awkward", "key"])
def test_an_info_that_cannot_travel_is_a_failure_of_that_turn(autoreset: str, what: str) -> None:
    with told(2, autoreset=autoreset) as vec:
        for ending in (f"{what} end", what):
            _, _, _, truncated, infos = vec.step([ending, "walk on"])
            assert truncated.tolist() == [True, False]
            error = infos[0].get("final_info", infos[0])["error"]
            assert error.startswith("its info cannot be sent between processes: ")
            if autoreset == "disabled":
                vec.reset(slots=[0])
            expected = Walk()
            expected.reset(seed=seed_of(0, vec.statistics["demo-process:Told-v0"].episodes, 2))
            expected.rng.random()
            assert vec.step({0: "walk on"})[3].tolist() == [False]


def test_infos_and_texts_travel_as_they_are() -> None:
    with told() as vec:
        assert vec.step(["rich", "text"])[4][0] == {"path": Path("a"), "list": [1, {"b": (2,)}], "set": {3}}
        assert vec.step(["text", "walk \ud800"])[0][0] == "subclass"


@pytest.mark.parametrize("backend", ["sync", "thread", "process"])
def test_actions_are_texts_of_any_class_and_nothing_else(backend: str) -> None:
    class Mine(str):
        __slots__ = ()

    with told(2, backend) as vec:
        [one, other] = vec.step([Mine("walk a"), "walk a"])[0]
        assert one[:2] == other[:2] == "a "
        for wrong in (7, None, b"a", ["a"]):
            with pytest.raises(ValueError, match=r"action for slot 1 is .* not a string"):
                vec.step(["walk b", wrong])  # type: ignore[list-item]
        assert not vec.pending
        assert vec.step(["walk b", "walk b"])[3].tolist() == [False, False]


def test_printing_reaches_the_terminal_and_disturbs_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with told() as vec:
        assert vec.step(["print hello\nthere", "print again"])[0] == ["printed", "printed"]
    assert "hello\nthere" in capfd.readouterr().out


def test_what_cannot_be_sent_to_a_worker_is_named_at_once() -> None:
    class Holds(Walk):
        def __init__(self, lock: Any = None) -> None:
            super().__init__()

    gem_core.register("demo-process:Holds-v0", Holds)
    with pytest.raises(EnvError, match=r"demo-process:Holds-v0 cannot be sent to a worker process: .*lock"):
        make("demo-process:Holds-v0", 2, "process", env_kwargs={"lock": threading.Lock()})


class Picky:
    """Can be sent, and not be received."""

    def __reduce__(self) -> Any:
        return _refuse, ()


def _refuse() -> Any:
    raise OSError("not in this process")


def test_what_a_worker_is_told_at_the_start_may_be_big() -> None:
    with make("demo-process:Walk-v0", 2, "process", wrappers=[partial(_carrying, b"x" * BIG)]) as vec:
        assert len(vec.reset()[0]) == 2


def _carrying(_: bytes, env: Env) -> Env:
    return env


def test_a_worker_that_cannot_begin_says_why() -> None:
    class Holds(Walk):
        def __init__(self, picky: Any = None) -> None:
            super().__init__()

    gem_core.register("demo-process:Holds-v0", Holds)
    with pytest.raises(EnvError, match=r"a worker process could not build its environments: OSError: not in this"):
        make("demo-process:Holds-v0", 2, "process", env_kwargs={"picky": Picky()})


def test_a_worker_that_dies_before_it_begins_says_how() -> None:
    class Deadly:
        def __reduce__(self) -> Any:
            return os._exit, (7,)

    class Holds(Walk):
        def __init__(self, deadly: Any = None) -> None:
            super().__init__()

    gem_core.register("demo-process:Holds-v0", Holds)
    with pytest.raises(EnvError, match="a worker process ended with code 7 before it could start"):
        make("demo-process:Holds-v0", 2, "process", env_kwargs={"deadly": Deadly()})


def test_plugins_decide_in_a_worker_as_they_do_here(site: Any, in_force: Callable[[], PluginManager]) -> None:
    source = """
    from gem_support.vector_envs import Walk

    @hookimpl
    def gem_make_env(spec, kwargs):
        return Walk(longest=1)
    """
    site.add("cloud", source)
    in_force().enable("cloud")
    gem_core.register("demo-process:Walk-v0", Walk)
    with make("demo-process:Walk-v0", 2, "process", env_kwargs={"longest": 40}) as vec:
        vec.reset()
        assert vec.step(["a", "b"])[2].tolist() == [True, True]


# -- waiting ---------------------------------------------------------------------------------------------------------


@pooled
def test_receiving_waits_no_longer_than_it_is_told(backend: str, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with told(3, backend, workers=3) as vec:
        vec.send({0: f"wait {gate}", 1: f"wait {gate}"})
        assert vec.recv(at_least=0) == {}
        assert vec.recv(timeout=0) == {}
        assert vec.recv(timeout=-1.0) == {}
        assert vec.recv(at_least=2, timeout=0.01) == {}
        vec.send({2: "walk a"})
        assert vec.recv(at_least=1, timeout=240).keys() == {2}
        vec.send({2: "walk b"})
        assert vec.recv(at_least=3, timeout=0.5).keys() <= {2}
        assert vec.pending >= {0, 1}
        gate.touch()
        rest = vec.recv(at_least=len(vec.pending), timeout=240)
        assert rest[0].observation == rest[1].observation == "waited"
        assert vec.recv(at_least=0, timeout=5) == {}
        assert not vec.pending


def test_taking_what_is_there_does_not_wait(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with told(1) as vec:
        vec.send({0: f"wait {gate}"})
        began = time.monotonic()
        for _ in range(2 * int(SECONDS)):
            assert vec.recv(at_least=0) == {}
        assert time.monotonic() - began < SECONDS  # each would wait for a second
        gate.touch()
        vec.recv()


@pooled
def test_another_thread_may_end_the_waiting(backend: str, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with told(2, backend, workers=2) as vec:
        vec.send({0: f"wait {gate}"})
        threading.Timer(0.1, vec.wake).start()
        assert vec.recv() == {}
        gate.touch()
        assert vec.recv()[0].observation == "waited"


@pooled
def test_a_wake_up_that_comes_before_the_waiting_ends_it(backend: str, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with told(2, backend, workers=2) as vec:
        vec.wake()
        vec.step(["walk a", "walk b"])  # waits, and cannot be woken
        vec.send({0: f"wait {gate}"})
        assert vec.recv() == {}
        gate.touch()
        assert vec.recv()[0].observation == "waited"


@pytest.mark.parametrize("backend", ["sync", "thread", "process"])
def test_episodes_may_be_begun_without_waiting(backend: str) -> None:
    with make("demo-process:Walk-v0", 3, backend, autoreset="disabled", env_kwargs={"longest": 40}) as vec:
        vec.send_reset([2, 0])
        answers = vec.recv(at_least=2)
        assert [(index, answers[index].observation) for index in sorted(answers)] == [
            (index, alone(derive_seed(SEED, index), 40)[0]) for index in (0, 2)
        ]
        assert all(one[1:4] == (0.0, False, False) for one in answers.values())
        vec.send_reset([1], tasks=[Task(7, "demo-process:Walk-v0", 7)])
        assert vec.recv()[1].info["seed"] == derive_seed(SEED, 7)
        assert vec.step([action(0)] * 3)[0][1] == alone(derive_seed(SEED, 7), 40)[1][0][0]
        with pytest.raises(ValueError, match="there are 3"):
            vec.send_reset([3])


@pooled
def test_draining_waits_for_calls_under_way(backend: str, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with told(2, backend, workers=2) as vec:
        vec.send({0: f"wait {gate}", 1: "walk a"})
        threading.Timer(0.1, gate.touch).start()
        vec.drain()
        assert gate.exists()
        assert not vec.pending
        assert len(vec.step(["walk a"] * 2)[0]) == 2


@pooled
def test_ctrl_c_while_waiting_loses_nothing(backend: str, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with told(2, backend, workers=2) as vec:
        vec.send({0: "walk a", 1: f"wait {gate}"})
        with pytest.raises(KeyboardInterrupt):
            receive_interrupted(vec, 2)
        gate.touch()
        answers = vec.recv(at_least=2)
        assert answers[0].observation.startswith("a ")
        assert answers[1].observation == "waited"
        assert len(vec.step(["walk a"] * 2)[0]) == 2


# -- workers that are lost -------------------------------------------------------------------------------------------


def test_a_worker_that_dies_while_nobody_plays_is_replaced_and_nobody_blamed() -> None:
    with make("demo-process:Walk-v0", 3, "process", env_kwargs={"longest": 40}) as vec:
        vec.reset()
        first = vec.step([action(0)] * 3)[0]
        [pid] = children()
        os.kill(pid, signal.SIGKILL)
        assert gone_soon([pid])
        second = vec.step([action(1)] * 3)[0]
        for index in range(3):
            turns = alone(derive_seed(SEED, index), 40)[1]
            assert [first[index], second[index]] == [turns[0][0], turns[1][0]]
        assert vec.statistics["demo-process:Walk-v0"].failures == 0


def test_an_environment_that_closes_the_worker_s_connection_has_failed() -> None:
    with told(2) as vec:
        infos = vec.step(["disconnect", "walk a"])[4]
        assert infos[0]["final_info"]["error"] == "ChildProcessError: its process closed its connection"
        assert infos[1] == {}


def test_a_child_process_ends_with_its_worker(tmp_path: Path) -> None:
    with told(1) as vec:
        vec.step([f"child {tmp_path / 'first'}"])
        vec.step([f"child {tmp_path / 'second'}"])
        first, second = noted(tmp_path / "first"), noted(tmp_path / "second")
        assert alive(first[0])
        assert alive(second[0])
        vec.step(["die"])
        assert gone_soon(first + second)
        vec.step([f"child {tmp_path / 'third'}"])
        assert alive(noted(tmp_path / "third")[0])
    assert gone_soon(noted(tmp_path / "third"))


def test_a_forked_process_hides_no_death_and_ends_with_its_worker(tmp_path: Path) -> None:
    with told(2) as vec:
        vec.step([f"fork {tmp_path / 'first'}", "walk a"])
        assert alive(noted(tmp_path / "first")[0])
        assert "SIGKILL" in vec.step({0: "die"})[4][0]["final_info"]["error"]
        assert gone_soon(noted(tmp_path / "first"))
        vec.step([f"fork {tmp_path / 'second'}", "walk a"])
    assert gone_soon(noted(tmp_path / "second"))


def test_a_forked_process_takes_none_of_the_worker_s_messages() -> None:
    with told(2) as vec:
        for turn in range(5):
            assert vec.step(["fork-exit", f"walk {turn}"])[0][0] == "forked"
            assert vec.step(["walk x", "walk y"])[3].tolist() == [False, False]


def test_a_forked_copy_of_the_vector_ends_no_worker() -> None:
    with told(2) as vec:
        pid = os.fork()
        if pid == 0:
            del vec
            gc.collect()
            os._exit(0)
        os.waitpid(pid, 0)
        [pid] = children()
        assert vec.step(["pid", "pid"])[0] == [str(pid)] * 2


# -- closing ---------------------------------------------------------------------------------------------------------


def test_a_closed_vector_refuses_everything_and_closes_again() -> None:
    vec = told(2, workers=2)
    pids = children()
    assert len(pids) == 2
    vec.close()
    vec.close()
    assert not any(alive(pid) for pid in pids)
    for misuse in (vec.reset, vec.recv, vec.drain, lambda: vec.step(["a", "b"]), lambda: vec.send({0: "a"})):
        with pytest.raises(ClosedError, match="closed"):
            misuse()


@pytest.mark.usefixtures("patient_close")
def test_environments_are_closed_with_the_vector(tmp_path: Path) -> None:
    notes = str(tmp_path / "notes")

    class Tidy(Walk):
        def close(self) -> None:
            with open(notes, "a") as file:
                file.write("1\n")

    gem_core.register("demo-process:Tidy-v0", Tidy)
    with make("demo-process:Tidy-v0", 3, "process") as vec:
        vec.reset()
        vec.step(["a"] * 3)
    assert len(noted(notes)) == 1 + 3  # make_vec's own, and these


@pytest.mark.parametrize("how", ["hang", "wait"])
def test_closing_waits_for_a_hung_environment_no_longer_than_it_should(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gem_core.vector._pool.CLOSE_SECONDS", 0.3)
    vec = told(2, workers=2)
    pids = children()
    vec.send({0: f"{how} {tmp_path / 'gate'}", 1: f"big {'y' * BIG}"})
    began = time.monotonic()
    vec.close()
    assert time.monotonic() - began < SECONDS - 10  # the gate would be given up then
    assert not any(alive(pid) for pid in pids)


def test_a_forgotten_vector_takes_its_workers_with_it() -> None:
    vec = told(2, workers=2)
    vec.send({0: "hang"})
    pids = children()
    assert len(pids) == 2
    del vec
    gc.collect()
    assert gone_soon(pids)


# -- scripts ---------------------------------------------------------------------------------------------------------

SCRIPT = """
import os, signal, sys, time
from collections import deque
from itertools import repeat
from pathlib import Path
from gem_core import Env, make_vec, register


class Mine(Env):
    def reset(self, seed=None, **options):
        super().reset(seed=seed)
        return str(self.rng.random()), {}

    def step(self, action):
        if action == "hang":
            Path(os.environ["GEM_TEST_MARK"], "hangs").touch()
            deque(repeat(None), maxlen=0)
        if action == "ignore":
            for number in {*signal.Signals} - {signal.SIGKILL, signal.SIGSTOP}:
                signal.signal(number, signal.SIG_IGN)
            Path(os.environ["GEM_TEST_MARK"], "hangs").touch()
            time.sleep(300)
        if action == "sleep":
            Path(os.environ["GEM_TEST_MARK"], "hangs").touch()
            time.sleep(300)
        return action + str(self.rng.random()), 1.0, False, False, {}

    def sample_random_action(self):
        return ""


register("demo:Mine-v0", Mine)
vec = make_vec("demo:Mine-v0", 3, backend=BACKEND, workers=2, seed=1)
print(*vec.reset()[0], flush=True)
"""


def script(rest: str, folder: Path, backend: str = "process") -> subprocess.Popen[str]:
    """A script with a vector, and then these lines."""
    return run_script(SCRIPT.replace("BACKEND", repr(backend)) + textwrap.dedent(rest), folder)


def hangs(run: subprocess.Popen[str], folder: Path) -> bool:
    """Wait until an environment of a script hangs."""
    wait_until(lambda: (folder / "hangs").exists() or run.poll() is not None)
    return (folder / "hangs").exists()


def none_left(folder: Path) -> bool:
    """Wait until no process of a script runs."""
    return wait_until(lambda: not processes_with(str(folder)))


def test_a_plain_script_plays_its_own_environments_and_leaves_nothing_behind(tmp_path: Path) -> None:
    run = script("print(*vec.step(list('abc'))[0])", tmp_path)  # neither a guard nor a close()
    out, err = run.communicate(timeout=240)
    assert (run.returncode, err) == (0, "")
    openings, turns = (line.split() for line in out.splitlines())
    assert len(set(openings)) == 3
    assert [one[0] for one in turns] == ["a", "b", "c"]
    assert none_left(tmp_path)


@pytest.mark.parametrize("what", ["hang", "sleep"])
def test_ctrl_c_ends_a_script_and_its_workers(what: str, tmp_path: Path) -> None:
    run = script(f"vec.step({{0: {what!r}, 2: 'a'}})", tmp_path)
    assert hangs(run, tmp_path)
    os.killpg(run.pid, signal.SIGINT)
    _, err = run.communicate(timeout=240)
    assert run.returncode not in (0, None)
    inner = err.count("During handling of the above exception")  # of the standard library's `signal`, at times
    assert err.count("Traceback") - inner == 1, err
    assert err.rstrip().endswith("KeyboardInterrupt")
    assert none_left(tmp_path)


@pytest.mark.parametrize("what", ["hang", "ignore"])
@pytest.mark.parametrize("signal_", [signal.SIGKILL, signal.SIGTERM])
def test_workers_die_with_a_killed_script_whatever_they_do(signal_: signal.Signals, what: str, tmp_path: Path) -> None:
    run = script(f"vec.step({{0: {what!r}, 2: 'a'}})", tmp_path)
    assert hangs(run, tmp_path)
    assert len(processes_with(str(tmp_path))) == 4  # with the one that cleans up
    os.kill(run.pid, signal_)
    run.communicate(timeout=240)
    assert none_left(tmp_path)


def test_workers_die_with_a_script_that_is_killed_while_they_start(tmp_path: Path) -> None:
    start = textwrap.dedent(
        """
        import os, signal
        from gem_core.vector import _process as process
        def die(self, *arguments):
            os.kill(os.getpid(), signal.SIGKILL)
        process.ProcessVectorEnv._poll = die
        """
    )
    run = run_script(start + SCRIPT.replace("BACKEND", "'process'"), tmp_path)
    _, err = run.communicate(timeout=240)
    assert run.returncode == -signal.SIGKILL
    assert none_left(tmp_path)
    assert "Traceback" not in err


def test_a_script_ends_though_an_environment_of_a_thread_hangs(tmp_path: Path) -> None:
    run = script("vec.send({0: 'sleep'}); print(vec.recv(timeout=0.05))", tmp_path, "thread")
    out, err = run.communicate(timeout=240)
    assert (run.returncode, out.splitlines()[-1], err) == (0, "{}", "")


def test_a_script_that_raises_leaves_nothing_behind(tmp_path: Path) -> None:
    run = script("vec.send({0: 'hang'}); raise SystemExit(5)", tmp_path)
    run.communicate(timeout=240)
    assert run.returncode == 5
    assert none_left(tmp_path)


def test_several_vectors_at_once_and_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gem_core.vector._pool.CLOSE_SECONDS", 0.3)
    with told(1) as one, told(1) as other:
        one.send({0: f"wait {tmp_path / 'gate'}"})
        assert other.step(["walk a"])[3] == [False]
        one.close()
        assert other.step(["walk b"])[3] == [False]
        (tmp_path / "gate").touch()


def test_the_episodes_of_many_rounds_are_right() -> None:
    with make("demo-process:Walk-v0", 6, "process", workers=2) as vec:
        episodes = play(vec, 200)
    for index, played in enumerate(episodes):
        assert played == [alone(seed_of(index, number, 6)) for number in range(len(played))]


def test_hashes_are_the_same_in_all_workers() -> None:
    gem_core.register("demo-process:Hashed-v0", "gem_support.vector_envs:Hashed")
    with gem_core.make_vec("demo-process:Hashed-v0", 4, backend="process", workers=4, seed=SEED) as vec:
        observations, _ = vec.reset()
    assert len({*observations}) == 1
