"""Ray actors: the same episodes as anywhere, and losses that cost only the member at work."""

from __future__ import annotations

import gc
import os
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import gem_core
from gem_core import Env, make_vec
from gem_core.errors import EnvError, MissingExtraError
from gem_core.failures import FailurePolicy
from gem_core.installation import install_line
from gem_core.seeding import derive_seed
from gem_core.vector import Autoreset, VectorEnv
from gem_support.ray_envs import Forging, Long, Recorded, Slow, Walk
from gem_support.waiting import wait_until
from gem_train.records import read_episodes
from gem_train.rollout import BatchCollector, Completion, RolloutSettings, recording

ray = pytest.importorskip("ray")

pytestmark = pytest.mark.uncertain("Ray has its own time limits, and some tests have limits of a second")

SEED = 11
COUNT = 4


class Foreign:
    """Builds an environment here, and cannot be unpickled anywhere else."""

    def __init__(self) -> None:
        self.home = os.getpid()

    def __call__(self, env: Env) -> Env:
        return env

    def __setstate__(self, state: dict[str, Any]) -> None:
        if state["home"] != os.getpid():
            raise ModuleNotFoundError("no such module on this node")
        self.__dict__ = state


@pytest.fixture(scope="module", autouse=True)
def _cluster() -> Iterator[None]:
    folder = tempfile.mkdtemp(prefix="gemray", dir="/tmp")  # short: Ray puts sockets in it
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # its default warns about a change to come
        ray.init(
            address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, _temp_dir=folder,
            object_store_memory=100 << 20,
        )  # fmt: skip
        yield
        ray.shutdown()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(autouse=True)
def _registered() -> None:
    for env in (Walk, Long, Slow, Forging):
        gem_core.register(f"demo-ray:{env.__name__}-v0", env)


def vector(env: str = "Long", num_envs: int = COUNT, *, workers: int = 2, **settings: Any) -> VectorEnv:
    return make_vec(f"demo-ray:{env}-v0", num_envs, backend="ray", workers=workers, seed=SEED, **settings)


def story(vec: VectorEnv, rounds: int) -> list[Any]:
    """Everything that a vector shows, but for where it runs."""
    shown: list[Any] = [vec.reset()]
    shown += [[*map(list, vec.step(["abc"[turn % 3]] * vec.num_envs))] for turn in range(rounds)]
    for one in shown:
        for info in one[-1]:
            info.pop("pid", None)
            info.get("final_info", {}).pop("pid", None)
    return shown


def gone(pid: int) -> bool:
    """The process ends."""
    return wait_until(lambda: not Path(f"/proc/{pid}").exists())


def observations(vec: VectorEnv, turns: int) -> list[list[str]]:
    return [vec.step(["a"] * vec.num_envs)[0] for _ in range(turns)]


@pytest.fixture(scope="module")
def undisturbed() -> list[list[str]]:
    """What each turn shows where nothing happens."""
    gem_core.register("demo-ray:Long-v0", Long)
    vec = make_vec("demo-ray:Long-v0", COUNT, seed=SEED)
    return [vec.reset()[0], *observations(vec, 6)]


@pytest.mark.parametrize("autoreset", ["same_step", "disabled"])
def test_the_same_episodes_as_in_one_process(autoreset: str) -> None:
    mode = Autoreset(autoreset)
    both: list[list[Any]] = []
    for settings in ({"backend": "sync"}, {"backend": "ray", "workers": 2}):
        vec = make_vec("demo-ray:Walk-v0", COUNT, seed=SEED, group_size=2, autoreset=mode, **settings)
        with vec:
            both.append(story(vec, 8))
    assert both[0] == both[1]


def test_by_default_there_are_as_many_actors_as_cpus_and_at_most_one_per_environment() -> None:
    with make_vec("demo-ray:Walk-v0", 3, backend="ray") as vec:
        assert len({info["pid"] for info in vec.reset()[1]}) == 2
    with make_vec("demo-ray:Walk-v0", 1, backend="ray") as vec:
        assert len({info["pid"] for info in vec.reset()[1]}) == 1


def test_there_may_be_more_actors_than_cpus() -> None:
    with vector(workers=COUNT) as vec:
        pids = {info["pid"] for info in vec.reset()[1]}
    assert len(pids) == COUNT


def test_nobody_waits_for_the_slowest() -> None:
    with vector() as vec:
        vec.reset()
        vec.send({0: "wait", 2: "a"})
        assert set(vec.recv()) == {2}
        assert vec.recv(0) == {}
        assert vec.recv(1, timeout=0.05) == {}
        vec.send({3: "b"})
        assert set(vec.recv()) == {3}
        assert vec.recv()[0].observation.startswith("wait")


def test_raising_and_unsendable_infos_cost_their_own_episodes_only(undisturbed: list[list[str]]) -> None:
    with vector(autoreset="disabled") as vec:
        vec.reset()
        shown, _, _, truncated, infos = vec.step(["raise", "a", "unsendable", "a"])
        assert truncated.tolist() == [True, False, True, False]
        assert infos[0]["error"] == "OSError: gone"
        assert "cannot be sent" in infos[2]["error"]
        assert [shown[1], shown[3]] == undisturbed[1][1::2]


@pytest.mark.parametrize(("trouble", "error"), [("hang", "TimeoutError"), ("die", "ActorDiedError")])
def test_neighbours_of_a_lost_member_go_on(trouble: str, error: str, undisturbed: list[list[str]]) -> None:
    with vector(autoreset="disabled", failures=FailurePolicy(timeout=1)) as vec:
        _, infos = vec.reset()
        first = observations(vec, 2)
        shown, _, _, truncated, after = vec.step(["a", trouble, "a", "a"])
        assert truncated.tolist() == [False, True, False, False]
        assert after[1]["error"].startswith(error)
        others = [0, 2, 3]
        actions = dict.fromkeys(others, "a")
        later = [vec.step(actions)[0] for _ in range(2)]
    assert first == undisturbed[1:3]
    assert [shown[index] for index in others] == [undisturbed[3][index] for index in others]
    assert later == [[turn[index] for index in others] for turn in undisturbed[4:6]]
    assert gone(infos[1]["pid"])


def test_a_turn_in_place_of_an_opening_is_a_failure() -> None:
    failures = FailurePolicy(max_failure_share=None)
    with vector("Forging", 1, workers=1, failures=failures) as vec:
        vec.reset()
        info = vec.step(["a"])[4][0]
        assert "an answer of somebody else, or to something else" in info["error"]
        assert vec.reset()[1][0]["episode"] == 2


def test_an_actor_that_dies_while_nothing_is_asked_of_it_is_nobodys_failure(undisturbed: list[list[str]]) -> None:
    with vector() as vec:
        _, infos = vec.reset()
        first = observations(vec, 1)
        os.kill(infos[0]["pid"], signal.SIGKILL)
        time.sleep(1.2)
        assert first + observations(vec, 2) == undisturbed[1:4]
        assert vec.statistics["demo-ray:Long-v0"].failures == 0


def test_the_time_limit_is_one_of_turns_and_not_of_what_waits_before_them_or_is_played_again() -> None:
    policy = FailurePolicy(timeout=0.7)
    with vector("Slow", workers=1, failures=policy) as vec:
        _, infos = vec.reset()  # 0.8 s in all
        observations(vec, 2)
        os.kill(infos[0]["pid"], signal.SIGKILL)
        time.sleep(1.2)  # more than the limit without being asked
        observations(vec, 1)  # each plays its two turns again: 0.8 s
        assert vec.statistics["demo-ray:Slow-v0"].failures == 0


def test_close_leaves_no_actor() -> None:
    vec = vector()
    pids = {info["pid"] for info in vec.reset()[1]}
    vec.send({0: "wait"})
    vec.close()
    vec.close()
    assert all(gone(pid) for pid in pids)


def test_a_vector_that_nobody_closed_leaves_no_actor() -> None:
    pids = {info["pid"] for info in vector().reset()[1]}
    gc.collect()
    assert all(gone(pid) for pid in pids)


def test_the_garbage_collector_may_find_a_vector_in_a_thread_of_rays() -> None:
    done = threading.Event()
    with vector() as vec:
        _, infos = vec.reset()
        vec.send({0: "wait"})
        first, second = vec._workers.values()  # type: ignore[attr-defined]
        first._expected[0].add_done_callback(lambda _: (second.kill(), done.set()))
        assert done.wait(120)
        assert gone(infos[2]["pid"])


def test_what_an_actor_cannot_import_shows_at_once() -> None:
    with pytest.raises(EnvError, match="no such module on this node"):
        vector(wrappers=[Foreign()])


def test_without_ray_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "gem_ray.vector", raising=False)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(
        MissingExtraError, match=rf"ray needs the module 'ray' .*not installed. Next: {re.escape(install_line('ray'))}"
    ):
        vector()


def test_after_a_shutdown_of_ray_it_says_so_and_can_be_closed() -> None:
    """The last one, as it takes Ray down."""
    vec = vector()
    vec.reset()
    ray.shutdown()
    with pytest.raises(EnvError, match="Ray was shut down"):
        vec.step(["a"] * COUNT)
    assert not ray.is_initialized()
    vec.close()


def test_one_seed_gives_byte_identical_recordings_in_four_backends(words: Any, tmp_path: Path) -> None:
    gem_core.register("demo-ray:Recorded-v0", Recorded)
    recorded = [recording_of(backend, words, tmp_path / f"{backend}.jsonl") for backend in BACKENDS]
    assert len(recorded[0]) == 3 * 6
    assert recorded == recorded[:1] * len(BACKENDS)


BACKENDS: tuple[Any, ...] = ("sync", "thread", "process", "ray")


def recording_of(backend: Any, words: Any, path: Path) -> list[bytes]:
    """The lines of a recording, in the order of the environments, without the name of the run."""

    def policy(prompts: Sequence[list[int]]) -> list[Completion]:
        return [Completion([2 + derive_seed(*prompt) % (len(words) - 2), words.eos_token_id]) for prompt in prompts]

    workers = {} if backend == "sync" else {"workers": 2}
    settings = RolloutSettings(max_response_tokens=8)
    with recording(path), make_vec("demo-ray:Recorded-v0", 6, backend=backend, seed=SEED, **workers) as vec:
        collector = BatchCollector(vec, policy, words, settings, min_batch=2)
        for _ in range(3):
            collector.collect_round()
        collector.close()
    lines = {
        (one.episode.slot, one.episode.number): line
        for one, line in zip(read_episodes(path), lines_of(path), strict=True)
    }
    return [re.sub(rb'"run":"\w+"', b'"run":""', lines[key]) for key in sorted(lines)]


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines()
