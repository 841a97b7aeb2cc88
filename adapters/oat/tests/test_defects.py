"""Defects of upstream GEM's program for Oat, each shown to be absent here.

The seventh defect, a crash that hangs, needs Launchpad: `full/test_program.py`.
"""

from __future__ import annotations

import tracemalloc
from collections import Counter
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from oat.args import default_args_validation
from runs import WatchedLearner, arguments, train

import gem_core
from gem_core.errors import EnvFailure, SettingsError
from gem_oat._checks import prepare
from gem_oat._data import PlaceholderPrompts
from gem_support.babble import Babble


class Constant(Babble):
    """Every reward is -0.1, for which one-pass variances in float32 give NaN."""

    def step(self, action):
        observation, _, _, _, info = super().step(action)
        return observation, -0.1, True, False, info


class Long(Babble):
    """One turn for most seeds, sixteen for every fourth."""

    started: ClassVar[list[int]] = []

    def reset(self, seed=None, **options):
        observation, info = super().reset(seed=seed)
        Long.started.append(seed)
        self.turns_left = 16 if (seed or 0) % 4 == 0 else 1
        return observation, info


class Empty(Babble):
    """For every third seed, the first observation fills the context."""

    def reset(self, seed=None, **options):
        observation, info = super().reset(seed=seed)
        return ("north " * 5000 if (seed or 0) % 3 == 0 else observation), {**info, f"key {seed}": 1}


class Overlong(Babble):
    """No prompt fits."""

    def reset(self, seed=None, **options):
        _, info = super().reset(seed=seed)
        return "north " * 5000, info


for kind in (Constant, Long, Empty, Overlong):
    gem_core.register(f"test:{kind.__name__}-v0", kind)


def test_1_equal_returns_do_not_change_the_weights(model: Path):
    run = train(arguments(model, env=["test:Constant-v0"], max_train=12))
    assert [one.advantage for one in run.batches[0]] == [0.0] * 12
    for name, value in run.learner.weights[1].items():
        assert torch.equal(value, run.learner.weights[0][name]), name


def test_2_there_are_no_more_prompts_than_episodes(model: Path):
    args = prepare(arguments(model, max_train=40))
    learner = WatchedLearner.__new__(WatchedLearner)
    learner.args = args
    tracemalloc.start()
    try:
        WatchedLearner.prepare_data(learner, _StrategyOfOneRank(), None)
        assert len([*learner.prompts_dataloader]) == 3  # batches of 12 in 40
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()
    assert len(learner.prompts_dataset) == 36
    assert PlaceholderPrompts(3)[2] == ("", "", "")


class _StrategyOfOneRank:
    def setup_dataloader(self, dataset, batch_size, shuffle):
        return torch.utils.data.DataLoader(dataset, batch_size, shuffle=shuffle, drop_last=True)


@pytest.mark.parametrize("num_env", [None, 6])
def test_3_long_episodes_are_trained_on_as_often_as_they_are_played(model: Path, num_env: int | None):
    """No episode that began is missing: it was trained on, waits for the next batch, or is unfinished."""
    Long.started.clear()
    args = arguments(model, env=["test:Long-v0"], max_concurrent=num_env, max_train=48, max_model_len=512)
    batches = train(args).learner.batches_of
    trained = [one.summary.seed for batch in batches for one in batch]
    assert len(trained) == 48
    assert {one.summary.turns for batch in batches for one in batch if one.summary.seed % 4 == 0} == {16}
    left = Counter(Long.started) - Counter(trained)
    surplus = batches[-1][0].info["rollout/surplus"]
    assert sum(left.values()) == surplus + (num_env or 12)  # each environment has one unfinished episode
    assert not Counter(trained) - Counter(Long.started)


def test_4_the_actor_gives_an_item_for_each_prompt(model: Path):
    run = train(arguments(model, env=["test:Fragile-v0"], env_failure="drop", max_env_failure_share=None))
    assert [len(batch) for batch in run.learner.batches_of] == [12, 12, 12]
    left_out = [sum(one.summary is None for one in batch) for batch in run.learner.batches_of]
    assert sum(left_out) > 0
    assert [info["rollout/dropped"] for info in run.learner.info] == left_out


def test_5_every_turn_reaches_the_update(model: Path):
    run = train(arguments(model, collocate=False, gpus=1, max_train=24))
    for batch, responses in zip(run.learner.batches_of, run.batches, strict=True):
        assert len(responses) == sum(one.summary.turns for one in batch)
    assert prepare(arguments(model, gpus=2, collocate=False)).pi_buffer_maxlen_per_device is None
    with pytest.raises(SettingsError, match="no row is dropped"):
        prepare(arguments(model, pi_buffer_maxlen_per_device=6))


class Test6Crashes:
    def test_episodes_without_a_turn_and_infos_that_differ(self, model: Path):
        run = train(arguments(model, env=["test:Empty-v0"]))
        assert all(info["stop/context_full"] > 0 for info in run.learner.info)
        assert run.learner.updates == [1, 1, 1]

    def test_it_is_reported_if_no_prompt_fits(self, model: Path):
        with pytest.raises(EnvFailure, match="20 episodes in a row ended before their first turn"):
            train(arguments(model, env=["test:Overlong-v0"]))

    def test_without_a_limit_the_models_own_applies(self, model: Path):
        run = train(arguments(model, max_model_len=None, max_train=12))
        assert len(run.batches) == 1

    def test_sizes_that_do_not_divide_are_refused(self, model: Path):
        for wrong in ({"train_batch_size": 8}, {"train_batch_size": 6}, {"group_size": 5}, {"eval_episodes": 0}):
            with pytest.raises(SettingsError):
                prepare(arguments(model, **wrong))

    def test_the_number_of_queries_does_not_end_a_run(self, model: Path):
        args = default_args_validation(prepare(arguments(model, max_train=60_000)))
        assert args.max_queries == 60_000  # Oat's default for both is 50,000
