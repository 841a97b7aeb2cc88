"""Policy versions: on tokens, in episodes, in metrics and in records."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import gem_core
from gem_core import Env, make_vec
from gem_core.episode import EpisodeSummary, StopReason
from gem_core.errors import PolicyError
from gem_core.update import Update
from gem_train.metrics import rollout_metrics, staleness_metrics
from gem_train.records import RunRecorder, open_records, read_episodes
from gem_train.results import EpisodeResult, result_metrics
from gem_train.rollout import BatchCollector, Completion, RolloutSettings, recording


class Two(Env):
    """Lasts two turns."""

    def reset(self, seed: int | None = None, **options: Any) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        self.left = 2
        return "go", {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        self.left -= 1
        return "on", 1.0, self.left == 0, False, {}

    def sample_random_action(self) -> str:
        return "go"


@pytest.fixture(autouse=True)
def _registered() -> None:
    gem_core.register("demo-versions:Two-v0", Two)


def collected(words: Any, *versions: Any) -> BatchCollector:
    """A collector whose policy samples three tokens a turn, with these versions turn after turn."""
    left = [*versions]

    def policy(prompts: Any) -> list[Completion]:
        return [Completion([5, 6, 7], [-1.0, -2.0, -3.0], versions=left.pop(0)) for _ in prompts]

    return BatchCollector(
        make_vec("demo-versions:Two-v0", 1, seed=0), policy, words, RolloutSettings(max_response_tokens=3)
    )


def test_each_token_knows_the_version_that_sampled_it(words: Any) -> None:
    [episode] = collected(words, 4, [4, 4, 5]).collect_round().episodes
    assert [turn.versions for turn in episode.turns] == [[(4, 3)], [(4, 2), (5, 1)]]
    assert episode.version_counts() == [(4, 5), (5, 1)]
    assert episode.summary().versions == [(4, 5), (5, 1)]


def test_a_policy_need_not_say_its_version(words: Any) -> None:
    [episode] = collected(words, None, None).collect_round().episodes
    assert episode.version_counts() == []


def test_there_is_a_version_for_each_token(words: Any) -> None:
    with pytest.raises(PolicyError, match="the policy gave 2 versions for 3 tokens"):
        collected(words, [1, 2]).collect_round()


def summary(*versions: tuple[int, int]) -> EpisodeSummary:
    one = EpisodeSummary("a:b", 0, 0, StopReason.TERMINATED, True, None, 1, 1.0, 1, 0, 0)
    return msgspec.structs.replace(one, versions=[*versions])


def test_staleness_equals_brute_force() -> None:
    episodes = [summary((3, 2), (5, 4)), summary((6, 1)), summary()]
    tokens = [7 - 3] * 2 + [7 - 5] * 4 + [7 - 6]
    assert staleness_metrics(episodes, 7) == {
        "staleness/mean": pytest.approx(np.mean(tokens)),
        "staleness/max": 4.0,
        "staleness/span": 1.0,
    }
    assert staleness_metrics([summary()], 7) == {}
    assert rollout_metrics(episodes, 0, 7).items() >= staleness_metrics(episodes, 7).items()
    assert not any(name.startswith("staleness") for name in rollout_metrics(episodes, 0))


def test_staleness_is_known_where_results_cross_processes() -> None:
    results = [EpisodeResult.decode(EpisodeResult(one).encode()) for one in (summary((1, 3)), summary((2, 1)))]
    assert result_metrics(results, 2)["staleness/mean"] == pytest.approx(3 / 4)


def test_recordings_keep_versions(words: Any, tmp_path: Path) -> None:
    with recording(tmp_path / "episodes.jsonl"):
        [episode] = collected(words, 4, [4, 4, 5]).collect_round().episodes
    read = next(read_episodes(tmp_path / "episodes.jsonl")).episode
    assert [turn.versions for turn in read.turns] == [turn.versions for turn in episode.turns]


@pytest.mark.parametrize("detail", ["summary", "full"])
@pytest.mark.parametrize(("number", "version"), [(8, None), (3, 7)])  # the latter: a number counts batches
def test_records_of_a_run_have_the_staleness_of_each_episode(
    words: Any, tmp_path: Path, detail: Any, number: int, version: int | None
) -> None:
    recorder = RunRecorder(tmp_path, detail=detail)
    gem_core.plugins.manager.register(recorder)
    try:
        [episode] = collected(words, 4, [4, 4, 5]).collect_round().episodes
        nothing, turns = np.zeros(2), np.arange(2)
        update = Update(number, [episode.id], np.zeros(2, int), turns, np.zeros(2, int), nothing, nothing)
        recorder.gem_update(replace(update, version=version))
    finally:
        gem_core.plugins.manager.unregister(recorder)
        recorder.close()
    records = open_records(tmp_path)
    [one] = records.summaries
    assert (one.summary.versions, one.update, one.staleness) == ([(4, 5), (5, 1)], number, 3)
    read = records.episode(0).episode
    assert read.version_counts() == ([(4, 5), (5, 1)] if detail == "full" else [])
