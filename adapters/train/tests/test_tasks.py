"""Which task each episode plays, for environments over a data set: none twice before all had their turn."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

import gem_core
from gem_core import Env, make_vec
from gem_core.failures import FailurePolicy
from gem_core.seeding import derive_seed
from gem_core.vector import Task, TaskTable
from gem_core.wrappers import TurnLimit
from gem_support.vector_envs import SEED
from gem_train.rollout import BatchCollector, Completion, EpisodeRunner, RolloutSettings

backends = pytest.mark.parametrize("backend", ["sync", "thread", "process"])


class Row(Env):
    """Shows its task; one turn."""

    takes_data_index = True

    def reset(
        self, seed: int | None = None, data_index: int | None = None, **options: Any
    ) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        return f"row {data_index}", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        return "", 0.0, True, False, {"success": False}

    def sample_random_action(self) -> str:
        return "a"


class Fragile(Row):
    """Fails in its first turn, whatever the task."""

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        raise OSError("gone")


@pytest.fixture(autouse=True)
def _registered() -> None:
    gem_core.register("demo-tasks:Row-v0", Row)
    gem_core.register("demo-tasks:Other-v0", Row)
    gem_core.register("demo-tasks:Fragile-v0", Fragile)


def rows(rounds: int, env_ids: Any = "demo-tasks:Row-v0", width: int = 4, **kwargs: Any) -> list[list[int]]:
    """The rows that each environment of a vector shows."""
    with make_vec(env_ids, width, seed=SEED, **kwargs) as vec:
        shown = [vec.reset()[0]]
        shown += [vec.step(["a"] * width)[0] for _ in range(rounds - 1)]
    return [[int(text.split()[1]) for text in slot] for slot in zip(*shown, strict=True)]


@backends
def test_no_row_twice_in_a_vector(backend: Any) -> None:
    played = rows(10, width=64, backend=backend)
    assert sorted(row for slot in played for row in slot) == list(range(640))


def test_rows_go_on_in_order() -> None:
    assert rows(3, width=2) == [[0, 2, 4], [1, 3, 5]]


def test_a_group_shares_its_rows() -> None:
    assert rows(3, width=4, group_size=2) == [[0, 2, 4], [0, 2, 4], [1, 3, 5], [1, 3, 5]]


def test_each_id_of_a_mixture_counts_its_own() -> None:
    weights = {"demo-tasks:Row-v0": 2.0, "demo-tasks:Other-v0": 1.0}
    with make_vec(weights, 6, seed=SEED) as vec:
        ids = vec.env_ids
    played = rows(5, weights, 6)
    for env_id, count in {"demo-tasks:Row-v0": 20, "demo-tasks:Other-v0": 10}.items():
        own = [row for slot, one in zip(played, ids, strict=True) if one == env_id for row in slot]
        assert sorted(own) == list(range(count))


def test_the_environments_of_a_table_count_their_own_tasks() -> None:
    table = TaskTable({"a": 2.0, "b": 1.0}, 3)
    assert [table[number] for number in range(6)] == [
        (0, "a", 0), (1, "b", 0), (2, "a", 1), (3, "a", 2), (4, "b", 1), (5, "a", 3)
    ]  # fmt: skip
    assert [TaskTable(["a", "a", "b"], 3)[number].env_id for number in range(6)] == ["a", "a", "b"] * 2
    with pytest.raises(IndexError, match="no task -1"):
        table[-1]


def played(env_ids: Any, width: int, rounds: int, **kwargs: Any) -> list[tuple[Task, int]]:
    """Each task that a vector plays, and the seed of its environment; every episode has one turn."""
    with make_vec(env_ids, width, seed=SEED, **kwargs) as vec:
        infos = vec.reset()[1]
        found: list[tuple[Task, int]] = []
        for _ in range(rounds):
            tasks = [vec.task(slot) for slot in range(width)]
            for task, info in zip(tasks, infos, strict=True):
                assert info["data_index"] == task.data_index
                found.append((task, info["seed"]))
            infos = vec.step(["a"] * width)[4]
    return found


@pytest.mark.parametrize("group_size", [1, 2])
@pytest.mark.parametrize(
    "env_ids",
    [
        "demo-tasks:Row-v0",
        ["demo-tasks:Row-v0", "demo-tasks:Row-v0", "demo-tasks:Other-v0"],
        {"demo-tasks:Row-v0": 3.0, "demo-tasks:Other-v0": 1.0},
    ],
)
def test_one_process_and_two_play_the_same_tasks(env_ids: Any, group_size: int) -> None:
    whole = played(env_ids, 16, 3, group_size=group_size)
    halves = [played(env_ids, 8, 3, group_size=group_size, shard=(number, 2)) for number in (0, 1)]
    assert sorted(whole) == sorted(halves[0] + halves[1])
    assert Counter(task.task_id for task, _ in whole) == dict.fromkeys(range(48 // group_size), group_size)
    assert {seed for _, seed in whole} == {derive_seed(SEED, number) for number in range(48 // group_size)}
    assert not {*halves[0]} & {*halves[1]}
    resumed = played(env_ids, 16, 1, group_size=group_size, first_episode=2)
    assert resumed == whole[32:]


@pytest.mark.parametrize("env_ids", [["demo-tasks:Row-v0"], {"demo-tasks:Row-v0": 3.0, "demo-tasks:Other-v0": 1.0}])
def test_a_runner_plays_the_tasks_of_a_vector(env_ids: Any, words: Any) -> None:
    async def policy(prompt: Any) -> Completion:
        return Completion([words.eos_token_id])

    async def main() -> list[Any]:
        runner = EpisodeRunner(env_ids, words, RolloutSettings(max_response_tokens=4), seed=SEED, max_concurrent=8)
        table = TaskTable(env_ids, 8)
        tasks = [table[number] for number in range(16)]
        episodes = [await runner.run(policy, task) for task in tasks]
        runner.close()
        return [(one.env_id, one.seed, one.data_index, one.task_id) for one in episodes if one is not None]

    with make_vec(env_ids, 8, seed=SEED) as vec:
        settings = RolloutSettings(max_response_tokens=4)
        collector = BatchCollector(
            vec, lambda prompts: [Completion([words.eos_token_id])] * len(prompts), words, settings
        )
        batches = [collector.collect_round() for _ in range(2)]
    collected = [(one.env_id, one.seed, one.data_index, one.task_id) for batch in batches for one in batch.episodes]
    assert asyncio.run(main()) == sorted(collected, key=lambda one: one[3])


def test_a_resumed_run_goes_on() -> None:
    assert rows(3, width=2, first_episode=2) == [[4, 6, 8], [5, 7, 9]]


@pytest.mark.parametrize(
    "wrong", [{"first_episode": -1}, {"shard": (2, 2)}, {"shard": (-1, 2)}, {"first_episode": 0.5}]
)
def test_numbers_that_cannot_work_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"first_episode|shard"):
        rows(1, **wrong)


@pytest.mark.parametrize("shard", [(0,), 3, None, "ab"])
def test_a_shard_is_a_pair(shard: Any) -> None:
    with pytest.raises(ValueError, match="shard"):
        rows(1, shard=shard)


def test_an_episode_says_how_to_play_it_again() -> None:
    with make_vec("math:Sample", 4, seed=SEED) as vec:
        observations, infos = vec.reset()
    for observation, info in zip(observations, infos, strict=True):
        with gem_core.make("math:Sample") as env:
            assert env.reset(seed=info["seed"], data_index=info["data_index"])[0] == observation


def test_wrapped_environments_take_tasks_too() -> None:
    assert rows(2, width=2, wrappers=[lambda env: TurnLimit(env, 3)]) == [[0, 2], [1, 3]]


@pytest.mark.parametrize("then", ["truncate", "drop"])
def test_a_failure_leaves_out_no_row(then: Any) -> None:
    failures = FailurePolicy(then=then, max_failure_share=None)
    assert rows(3, "demo-tasks:Fragile-v0", 2, failures=failures) == [[0, 2, 4], [1, 3, 5]]


def test_other_environments_are_told_nothing() -> None:
    seen: list[dict[str, Any]] = []

    class Plain(Row):
        takes_data_index = False

        def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
            seen.append(options)
            return super().reset(seed=seed)

    gem_core.register("demo-tasks:Plain-v0", Plain)
    with make_vec("demo-tasks:Plain-v0", 2, seed=SEED) as vec:
        vec.reset()
    assert seen == [{}, {}]


def test_a_runner_plays_the_task_that_it_is_told(words: Any) -> None:
    async def policy(prompt: Any) -> Completion:
        return Completion([words.eos_token_id])

    async def main(tasks: list[int]) -> list[str]:
        runner = EpisodeRunner(
            "demo-tasks:Row-v0", words, RolloutSettings(max_response_tokens=4), seed=SEED, max_concurrent=2
        )
        episodes = await runner.run_all(policy, tasks)
        runner.close()
        return [f"{episode.turns[0].observation}, task {episode.data_index}" for episode in episodes]

    async def elsewhere() -> str:
        runner = EpisodeRunner("demo-tasks:Row-v0", words, RolloutSettings(max_response_tokens=4), seed=SEED)
        episode = await runner.run(policy, Task(5, "demo-tasks:Row-v0", 2))
        runner.close()
        assert episode is not None
        return f"{episode.turns[0].observation}, slot {episode.slot}"

    assert asyncio.run(elsewhere()) == "row 2, slot 5"
    shown = asyncio.run(main([0, 3, 7, 3]))
    assert Counter(shown) == {"row 0, task 0": 1, "row 3, task 3": 2, "row 7, task 7": 1}
