"""Checks of a run of three batches with misbehaving environments, for any framework.

A batch is 12 tasks, each played twice: 4 of Babble, 6 of Hostile, 2 of Chatty. In each process, one episode of Babble
is under way at a time (`env_limits`).
"""

from __future__ import annotations

from collections import Counter, defaultdict

import pytest

from gem_support.training_run import TrainingRun
from gem_train.rollout import StopReason

TASKS, EPISODES, BATCHES = 12, 24, 3
OF_EACH = {"Babble": 8, "Hostile": 12, "Chatty": 4}


def assert_nothing_stopped_it(run: TrainingRun) -> None:
    """The run did not stop, although environments raised, hung, died and overflowed the context."""
    assert run.code == 0, run.output[-3000:]
    assert [line["step"] for line in run.metrics] == [1, 2, 3]
    errors = Counter(str(episode.error).split(":")[0] for episode in run.episodes if episode.error)
    assert {"RuntimeError", "TimeoutError", "ChildProcessError"} <= {*errors}
    assert sum(line["env/errors"] for line in run.metrics) == sum(errors.values())
    chatty = [episode for episode in run.episodes if episode.env_id == "test:Chatty-v0"]
    assert {episode.stop_reason for episode in chatty} == {StopReason.CONTEXT_FULL}


def assert_every_episode_is_counted(run: TrainingRun) -> None:
    """Every episode is in the metrics of its batch."""
    steps = run.episodes_by_step(TASKS)
    assert [len(steps[step]) for step in range(BATCHES)] == [EPISODES] * BATCHES
    for step, line in enumerate(run.metrics):
        assert line["rollout/episodes"] == EPISODES
        assert line["rollout/turns"] == sum(len(episode.turns) for episode in steps[step])
        total = sum(one.total_reward for one in steps[step])
        assert line["episode/return"] == pytest.approx(total / EPISODES, abs=1e-5)
        assert {name: line[f"env/test:{name}-v0/episodes"] for name in OF_EACH} == OF_EACH


def assert_groups_play_one_task(run: TrainingRun) -> None:
    """The two episodes of a task are the same game, and different tasks are different games."""
    seeds: dict[int, list[int]] = defaultdict(list)
    for episode in run.episodes:
        if episode.env_id.startswith("test:"):
            seeds[episode.slot].append(episode.seed)
    assert len(seeds) == TASKS * BATCHES
    assert all(len(one) == 2 and len({*one}) == 1 for one in seeds.values())
    assert len({one[0] for one in seeds.values()}) == TASKS * BATCHES


def assert_the_limit_held(run: TrainingRun) -> None:
    """Episodes of Babble came one after the other."""
    babble = [one for one in run.episodes if one.env_id == "test:Babble-v0"]
    assert {turn.info["at_once"] for one in babble for turn in one.turns} == {1}
