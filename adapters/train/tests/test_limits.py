"""Limits of how many episodes of an environment play at once: nothing is lost, replaced or starved."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from typing import Any

import pytest

import gem_core
from gem_core import Env, make_vec
from gem_core.errors import SettingsError
from gem_core.failures import FailurePolicy
from gem_core.vector import TaskTable
from gem_train.rollout import BatchCollector, Completion, EpisodeRunner, RolloutSettings, StopReason
from gem_train.settings import RunSettings

SEED = 11
SCARCE, PLENTY, FRAIL = "demo-limits:Scarce-v0", "demo-limits:Plenty-v0", "demo-limits:Frail-v0"
MIXTURE = {PLENTY: 1.0, SCARCE: 1.0}
SETTINGS = RolloutSettings(max_response_tokens=4)


class Open:
    """Counts the episodes under way in this process."""

    def __init__(self) -> None:
        self.now, self.most = 0, 0
        self.lock = threading.Lock()

    def add(self, count: int) -> None:
        with self.lock:
            self.now += count
            self.most = max(self.most, self.now)


OPEN = Open()


class Plenty(Env):
    """Ends after as many turns as its seed says, one to three."""

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.left = self.rng.randint(1, 3)
        return "Go.", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.left -= 1
        return "More.", 1.0, self.left == 0, False, {"success": self.left == 0}

    def sample_random_action(self) -> str:
        return "a"


class Scarce(Plenty):
    """Something that few episodes may have at once."""

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        OPEN.add(1)
        return super().reset(seed=seed)

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        result = super().step(action)
        if result[2]:
            OPEN.add(-1)
        return result


class Frail(Plenty):
    """Fails in every opening."""

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        raise OSError("no room")


@pytest.fixture(autouse=True)
def _registered() -> None:
    OPEN.now = OPEN.most = 0
    for env_id, kind in {SCARCE: Scarce, PLENTY: Plenty, FRAIL: Frail}.items():
        gem_core.register(env_id, kind)


def collector(words: Any, env_ids: Any = MIXTURE, width: int = 12, **kwargs: Any) -> BatchCollector:
    vec = make_vec(env_ids, width, seed=SEED, **kwargs)
    return BatchCollector(vec, lambda prompts: [Completion([words.eos_token_id])] * len(prompts), words, SETTINGS)


def shown(batches: list[Any]) -> list[list[tuple[Any, ...]]]:
    """Everything about the episodes of each batch that does not depend on when they were played."""
    return [
        [
            (one.env_id, one.seed, one.data_index, one.task_id, one.slot, one.number, len(one.turns))
            for one in batch.episodes
        ]
        for batch in batches
    ]


@pytest.mark.parametrize("group_size", [1, 2, 3])
def test_rounds_are_the_same_with_and_without_a_limit(words: Any, group_size: int) -> None:
    all_alike(words, None, {SCARCE: 1}, {SCARCE: 4}, {SCARCE: 2, PLENTY: 5}, {SCARCE: 100}, group_size=group_size)


@pytest.mark.parametrize("backend", ["thread", "process"])
def test_rounds_are_the_same_in_every_backend(words: Any, backend: Any) -> None:
    all_alike(words, None, {SCARCE: 2}, group_size=2, backend=backend)


def all_alike(words: Any, *limits: Any, **kwargs: Any) -> None:
    results: list[Any] = []
    for one_limit in limits:
        one = collector(words, env_limits=one_limit, **kwargs)
        results.append(shown([one.collect_round() for _ in range(3)]))
        one.close()
    assert all(result == results[0] for result in results)
    assert [len(batch) for batch in results[0]] == [12] * 3


@pytest.mark.parametrize("backend", ["sync", "thread"])
@pytest.mark.parametrize("limit", [1, 2, 6])
def test_no_more_episodes_than_the_limit_are_under_way(words: Any, backend: Any, limit: int) -> None:
    one = collector(words, backend=backend, env_limits={SCARCE: limit})
    for _ in range(4):
        one.collect_round()
    # Six slots have six places, and then the next episodes begin by themselves.
    assert OPEN.most == limit
    one.close()


@pytest.mark.parametrize("how", ["turns", "episodes"])
def test_no_task_is_left_out_where_episodes_carry_over(words: Any, how: str) -> None:
    one = collector(words, backend="thread", env_limits={SCARCE: 2})
    episodes = [
        episode
        for _ in range(30)
        for episode in (one.collect_turns(7) if how == "turns" else one.collect_episodes(6)).episodes
    ]
    played = Counter(episode.slot for episode in episodes if episode.env_id == SCARCE)
    assert OPEN.most == 2
    one.close()
    assert len(played) == 6
    assert max(played.values()) - min(played.values()) <= 1  # they take turns
    for slot, count in played.items():
        assert sorted(one.number for one in episodes if one.slot == slot) == [*range(count)]


def test_an_episode_that_ends_for_the_context_s_sake_gives_up_its_place(words: Any) -> None:
    vec = make_vec(SCARCE, 6, seed=SEED, env_limits={SCARCE: 1})
    tight = RolloutSettings(max_response_tokens=4, max_context_tokens=24)
    said = "a b c d e f g h i j k l m n o p q r s t u v w x y z"
    one = BatchCollector(vec, lambda prompts: [Completion(words.encode(said)[:4])] * len(prompts), words, tight)
    batches = [one.collect_round() for _ in range(3)]
    one.close()
    assert [len(batch.episodes) for batch in batches] == [6, 6, 6]
    cut = [episode for batch in batches for episode in batch.episodes if episode.stop_reason is StopReason.CONTEXT_FULL]
    assert cut
    assert vec.statistics[SCARCE].abandoned == len(cut)


@pytest.mark.parametrize("backend", ["sync", "process"])
def test_failures_give_up_their_places(words: Any, backend: Any) -> None:
    failures = FailurePolicy(max_failure_share=None)
    one = collector(words, {FRAIL: 1.0}, 4, backend=backend, env_limits={FRAIL: 1}, failures=failures)
    batches = [one.collect_round() for _ in range(2)]
    one.close()
    assert [sorted(episode.task_id for episode in batch.episodes) for batch in batches] == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_a_vector_refuses_more_episodes_than_the_limit() -> None:
    with make_vec(MIXTURE, 6, seed=SEED, env_limits={SCARCE: 2}) as vec:
        scarce = [slot for slot in range(6) if vec.env_ids[slot] == SCARCE]
        with pytest.raises(ValueError, match=r"3 more episodes of demo-limits:Scarce-v0 .* leaves 2 now"):
            vec.reset()
        with pytest.raises(ValueError, match="exceed its limit"):
            vec.send_reset(scarce)
        vec.reset(slots=scarce[:2])
        assert (vec.places_left(SCARCE), vec.places_left(PLENTY)) == (0, None)
        with pytest.raises(ValueError, match="leaves 0 now"):
            vec.reset(slots=scarce[2:])
        vec.reset(slots=scarce[:1])  # in the place that it has
        vec.abandon(scarce[:1])
        assert vec.places_left(SCARCE) == 1
        vec.reset(slots=scarce[2:])
        assert vec.statistics[SCARCE].abandoned == 2


@pytest.mark.parametrize(
    ("limits", "says"),
    [
        (
            {"demo-limits:Scarse-v0": 1},
            "env_limits names 'demo-limits:Scarse-v0'.*Did you mean 'demo-limits:Scarce-v0'",
        ),
        ({SCARCE: 0}, "at least 1, not"),
        ({SCARCE: 1.5}, "whole number"),
        (3, "must be"),
    ],
)
def test_limits_that_cannot_work(limits: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        make_vec(MIXTURE, 4, env_limits=limits)


def test_a_runner_waits_and_plays_every_task(words: Any) -> None:
    async def policy(prompt: Any) -> Completion:
        await asyncio.sleep(0)
        return Completion([words.eos_token_id])

    async def main() -> list[Any]:
        runner = EpisodeRunner(MIXTURE, words, SETTINGS, seed=SEED, max_concurrent=12, env_limits={SCARCE: 2})
        table = TaskTable(MIXTURE, 12)
        episodes = await runner.run_all(policy, [table[number] for number in range(36)])
        runner.close()
        return [(one.env_id, one.seed, one.data_index, one.task_id) for one in episodes]

    played = asyncio.run(main())
    assert OPEN.most == 2
    assert [one[3] for one in played] == [*range(36)]
    assert Counter(one[0] for one in played) == {SCARCE: 18, PLENTY: 18}
    whole = collector(words)
    rounds = [episode for _ in range(3) for episode in whole.collect_round().episodes]
    whole.close()
    assert played == [(one.env_id, one.seed, one.data_index, one.task_id) for one in rounds]


def test_the_setting() -> None:
    made = RunSettings(env=[PLENTY, SCARCE], env_limits=[0, 4], eval_env=[SCARCE])
    made.check()
    assert (made.limits("train"), made.limits("eval")) == ({SCARCE: 4}, {SCARCE: 4})
    assert RunSettings(env=[PLENTY, SCARCE], env_limits=[3, 4], eval_env=[PLENTY]).limits("eval") == {PLENTY: 3}
    assert RunSettings(env=[PLENTY]).limits("train") == {}
    for wrong in ([1], [1, -1], [1, 2, 3]):
        with pytest.raises(SettingsError, match=r"env_limits=.*give each environment one limit, 0 for none"):
            RunSettings(env=[PLENTY, SCARCE], env_limits=wrong).check()
    with pytest.raises(SettingsError, match="name each once"):
        RunSettings(env=[PLENTY, PLENTY], env_limits=[1, 1]).check()
