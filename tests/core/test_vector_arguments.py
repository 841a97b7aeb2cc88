"""Bad input gets a clear error, and what looks odd but is meant gets what it means."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy
import pytest

import gem_core
from gem_core import FailurePolicy, make_vec
from gem_core.errors import ClosedError, EnvFailure
from gem_core.failures import MAX_ATTEMPTS
from gem_core.seeding import derive_seed
from gem_core.vector import Task
from gem_core.vector._pool import MAX_LOSSES
from gem_support.vector_envs import Turns
from gem_train.rollout import BatchCollector, Completion, EpisodeRunner, RolloutSettings

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

SEED = 4


@pytest.fixture(autouse=True)
def _registered() -> None:
    gem_core.register("demo-arguments:Turns-v0", Turns)
    gem_core.register("demo-arguments:Other-v0", Turns)


def vector(count: Any = 2, **arguments: Any) -> Any:
    return make_vec("demo-arguments:Turns-v0", count, **{"seed": SEED, **arguments})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"count": "3"}, "whole numbers.*'3'"),
        ({"count": 2.0}, "whole numbers"),
        ({"count": True}, "whole numbers"),
        ({"backend": "thread", "workers": "2"}, "whole number"),
        ({"backend": "thread", "workers": 0}, "workers must be at least 1"),
        ({"backend": None}, "no vector backend None"),
        ({"autoreset": "bogus"}, r"one of \['same_step', 'disabled'\], not 'bogus'"),
        ({"seed": "x"}, "whole numbers are needed.*seed"),
        ({"seed": 1.5}, "whole numbers are needed.*seed"),
        ({"env_kwargs": 5}, "env_kwargs must be a dict.*not 5"),
        ({"env_kwargs": {"demo-arguments:Turns-v0": 5}}, r"env_kwargs\['demo-arguments:Turns-v0'\] must be a dict"),
        ({"failures": "drop"}, r"FailurePolicy\(then='drop'\)"),
        ({"failures": FailurePolicy(timeout=5)}, "sync backend cannot enforce timeout=5"),
    ],
)
def test_vectors_that_cannot_be_made(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        vector(**arguments)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"then": "explode"}, r"one of \['truncate', 'drop', 'raise'\], not 'explode'"),
        ({"then": "retry"}, "would never end"),
        ({"window": 2.5}, "window=2.5"),
        ({"window": 0}, "window=0"),
        ({"retries": 1.5}, "retries=1.5"),
        ({"retries": "1"}, "retries='1'"),
        ({"timeout": "5"}, "timeout.*'5'"),
        ({"timeout": True}, "timeout.*True"),
        ({"timeout": 0}, "timeout.*0"),
        ({"max_failure_share": "x"}, "max_failure_share.*'x'"),
        ({"max_failure_share": 1}, "max_failure_share"),
    ],
)
def test_policies_that_cannot_work(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FailurePolicy(**settings)


def test_calls_that_mean_nothing() -> None:
    with vector() as vec:
        vec.reset()
        calls: list[tuple[Callable[[], Any], str]] = [
            (lambda: vec.send(["a", "b"]), "slot: action"),
            (lambda: vec.send({"0": "a"}), "by their numbers"),
            (lambda: vec.send({1.0: "a"}), "by their numbers"),
            (lambda: vec.send({0: 3}), "slot 0 is 3"),
            (lambda: vec.reset(seed={1, 2}), "a list with one per slot"),
            (lambda: vec.reset(seed={1: 2}), "a list with one per slot"),
            (lambda: vec.reset(slots=0), r"slots=\[0\]"),
            (lambda: vec.recv("1"), "'1'"),
            (lambda: vec.recv(0, timeout="1"), "'1'"),
            (lambda: vec.recv(0, timeout=float("nan")), "nan"),
            (lambda: vec.send_reset([0, 1], tasks=[vec.task(0)]), "1 tasks for 2"),
        ]
        for call, message in calls:
            with pytest.raises(ValueError, match=message):
                call()
        assert vec.step(["a", "b"])[1].tolist() == [1.0, 1.0]
    with pytest.raises(ClosedError), vec:
        pass


@pytest.mark.parametrize("backend", ["sync", "thread", "process"])
def test_seeds_of_a_reset(backend: str) -> None:
    with vector(2, backend=backend, workers=None if backend == "sync" else 1) as vec:
        for wrong in (1.5, "1", b"12", True, [1], [1, 2, 3], [1, 2.5], [1, "2"], [1, None], object()):
            with pytest.raises(ValueError, match="seed"):
                vec.reset(seed=wrong)
        assert not vec.pending
        assert vec.recv(0) == {}
        vec.drain()
        infos = vec.reset(seed=[7, 7])[1]
        assert infos == [{"seed": 7, "episode": 0}] * 2
        infos = vec.reset()[1]
        assert infos == [{"seed": derive_seed(SEED, 2 + slot), "episode": 1} for slot in range(2)]
        infos = vec.reset(seed=(8,), slots=[1])[1]
        assert infos == [{"seed": 8, "episode": 2}]
        infos = vec.reset(seed=numpy.int64(3))[1]
        assert infos == [{"seed": derive_seed(3, slot), "episode": 0} for slot in range(2)]
        infos = vec.reset(seed=numpy.array([5, 6]))[1]
        assert infos == [{"seed": 5, "episode": 1}, {"seed": 6, "episode": 1}]
        assert vec.step(["a", "a"])[1].tolist() == [1.0, 1.0]


def test_tasks_that_a_slot_cannot_play_are_refused() -> None:
    with vector() as vec:
        for tasks, message in [
            ([Task(0, "demo-arguments:Turns-v0", 0)], "1 tasks for 2 slots"),
            ([Task(0, "demo-arguments:Other-v0", 0)] * 2, "slot 0 has demo-arguments:Turns-v0, which cannot play"),
        ]:
            with pytest.raises(ValueError, match=message):
                vec.send_reset([0, 1], tasks=tasks)
        assert not vec.pending


def test_the_shape_of_a_mixture_says_how_many() -> None:
    turns, other = "demo-arguments:Turns-v0", "demo-arguments:Other-v0"
    with make_vec({turns: 3, other: 1}) as vec:
        assert sorted(vec.env_ids) == [other, turns, turns, turns]
    with make_vec([turns, turns, other]) as vec:
        assert vec.num_envs == 3
    with make_vec({turns: 3, other: 1}, group_size=2) as vec:
        assert vec.num_envs == 8
    for weights, message in [({turns: 0.5, other: 0.5}, "num_envs"), ({turns: "x"}, "'x'"), ([1, 2], "texts")]:
        with pytest.raises(ValueError, match=message):
            make_vec(weights)  # type: ignore[arg-type]


# -- what an environment may answer, and when an episode counts --------------------------------------------------------


@pytest.mark.parametrize("backend", ["sync", "thread", "process"])
@pytest.mark.parametrize(("action", "error"), [("text", "'3.5'"), ("no", "'no'"), ("cancel", "CancelledError")])
def test_odd_answers_are_failures(backend: str, action: str, error: str) -> None:
    with vector(backend=backend, autoreset="disabled") as vec:
        vec.reset()
        _, _, _, truncated, infos = vec.step([action, "a"])
        assert truncated.tolist() == [True, False]
        assert error in infos[0]["error"]
        vec.reset(slots=[0])
        assert vec.step(["a", "a"])[1].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("autoreset", ["disabled", "same_step"])
def test_an_opening_that_fails_is_not_the_end(autoreset: str) -> None:
    with vector(1, autoreset=autoreset, env_kwargs={"bad_openings": [derive_seed(SEED, 0)], "turns": 1}) as vec:
        assert "no level" in vec.reset()[1][0]["error"]
        assert vec.step(["a"])[3].tolist() == [True]
        if autoreset == "disabled":
            assert "reset it first" in vec.step(["a"])[4][0]["error"]
            vec.reset()
        assert vec.step(["a"])[1].tolist() == [1.0]
        statistics = vec.statistics["demo-arguments:Turns-v0"]
        assert (statistics.episodes, statistics.failed) == (2, 1)


def test_abandoned_episodes_count_as_ones_that_did_not_fail() -> None:
    with vector(1, failures=FailurePolicy(window=4)) as vec:
        for round_ in range(8):
            vec.reset()
            vec.step(["raise" if round_ % 3 == 0 else "a"])
        statistics = vec.statistics["demo-arguments:Turns-v0"]
        assert (statistics.failed, statistics.abandoned) == (3, 7)


@pytest.mark.uncertain("well-behaved code must answer within a second or two")
def test_an_ending_that_came_in_time_is_not_undone_by_the_opening_after_it() -> None:
    kwargs = {"turns": 1, "slow_openings": [derive_seed(SEED, 1)]}
    with vector(1, backend="thread", env_kwargs=kwargs, failures=FailurePolicy(timeout=0.3)) as vec:
        vec.reset()
        vec.send({0: "a"})
        time.sleep(0.8)
        transition = vec.recv()[0]
    assert (transition.reward, transition.terminated, transition.truncated) == (1.0, True, False)
    assert "TimeoutError" in transition.info["error"]


def test_many_idle_workers_may_die_at_once() -> None:
    many = MAX_LOSSES + 1  # more than one worker may lose in a row
    with vector(many, backend="process", workers=many) as vec:
        vec.reset()
        for worker in vec._workers.values():
            os.kill(worker.process.pid, signal.SIGKILL)
        assert vec.step(["a"] * many)[1].tolist() == [1.0] * many
        assert vec.statistics["demo-arguments:Turns-v0"].failures == 0


@pytest.mark.parametrize("backend", ["thread", "process"])
def test_waking_costs_nothing(backend: str) -> None:
    with vector(backend=backend) as vec:
        for _ in range(5000):
            vec.wake()
        vec.reset()
        assert vec.step(["a", "b"])[1].tolist() == [1.0, 1.0]
    vec.wake()


# -- drivers -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def settings() -> RolloutSettings:
    return RolloutSettings(max_response_tokens=8)


def test_a_collector_wants_a_vector_of_its_own(words: PreTrainedTokenizerFast, settings: RolloutSettings) -> None:
    with vector() as vec:
        vec.send_reset([0])
        with pytest.raises(ValueError, match="under way"):
            BatchCollector(vec, lambda prompts: [], words, settings)


def test_turns_under_way_when_a_batch_begins_are_carried(
    words: PreTrainedTokenizerFast, settings: RolloutSettings
) -> None:
    entered, gate = threading.Event(), threading.Event()

    class Waits(Turns):
        def step(self, action: str) -> Any:
            if self.first:
                entered.set()
                assert gate.wait(120)
            assert entered.wait(120)
            return super().step(action)

        def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
            self.first = seed == derive_seed(SEED, 0)
            return super().reset(seed=seed)

    gem_core.register("demo-arguments:Waits-v0", Waits)
    with make_vec("demo-arguments:Waits-v0", 2, backend="thread", env_kwargs={"turns": 1}, seed=SEED) as vec:
        collector = BatchCollector(
            vec, lambda prompts: [Completion([2, 1])] * len(prompts), words, settings, min_batch=1
        )
        assert {one.slot for one in collector.collect_episodes(3).episodes} == {1}
        gate.set()
        batch = collector.collect_round()
    assert [one.slot for one in batch.episodes].count(0) == 1
    assert batch.carried_turns >= 1


async def silent(prompt: list[int]) -> Completion:
    """A policy that only ends its turn."""
    await asyncio.sleep(0.001)
    return Completion([2, 1])


@pytest.fixture
def runner(words: PreTrainedTokenizerFast, settings: RolloutSettings) -> Iterator[Callable[..., EpisodeRunner]]:
    made: list[EpisodeRunner] = []

    def build(**arguments: Any) -> EpisodeRunner:
        made.append(EpisodeRunner("demo-arguments:Failing-v0", words, settings, seed=SEED, **arguments))
        return made[-1]

    class Failing(Turns):
        def step(self, action: str) -> Any:
            raise OSError("gone")

    gem_core.register("demo-arguments:Failing-v0", Failing)
    yield build
    for one in made:
        one.close()


def test_many_failures_at_once_stop_a_runner_and_leave_nobody_waiting(runner: Callable[..., EpisodeRunner]) -> None:
    one = runner(failures=FailurePolicy(then="raise"), max_concurrent=8)  # type: ignore[arg-type]

    async def main() -> list[Any]:
        playing = asyncio.gather(*[one.run(silent, task) for task in range(16)], return_exceptions=True)
        return await asyncio.wait_for(playing, 120)

    assert {type(error) for error in asyncio.run(main())} == {EnvFailure}


def test_two_loops_at_once_are_refused(runner: Callable[..., EpisodeRunner]) -> None:
    one = runner()
    errors: list[BaseException] = []

    async def main() -> None:
        await one.run(silent, 0)

        def elsewhere() -> None:
            try:
                asyncio.run(one.run(silent, 1))  # type: ignore[arg-type]
            except RuntimeError as error:
                errors.append(error)

        await asyncio.get_running_loop().run_in_executor(None, elsewhere)

    asyncio.run(main())
    assert "build one per loop" in str(errors[0])


def test_a_plugin_that_always_says_retry_is_not_obeyed_for_ever() -> None:
    with vector(1) as vec:
        vec.on_failure = lambda fault: (
            gem_core.ErrorAction.RETRY if fault.attempt < MAX_ATTEMPTS else gem_core.ErrorAction.TRUNCATE
        )
        vec.reset()
        assert vec.step(["raise"])[3].tolist() == [True]
        assert vec.statistics["demo-arguments:Turns-v0"].failures == MAX_ATTEMPTS
