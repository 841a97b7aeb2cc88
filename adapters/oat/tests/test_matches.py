"""Matches as Oat's transitions: the collector counts a match once, and the learner gets every agent."""

from __future__ import annotations

from pathlib import Path

from oat.algorithms.ppo import PPOArgs
from runs import GAMMA, arguments, train

from gem_oat._transitions import batch_episodes, batch_items, turn_rows
from gem_support import pairs_match
from gem_support.byte_level import byte_level_bpe


def test_rows_and_advantages_of_every_agent() -> None:
    batch = pairs_match.played(byte_level_bpe())
    items = batch_items(batch, batch.matches + 1)
    assert [len(one.each) for one in items] == [2] * batch.matches + [1]
    agents = [one for item in items for one in item.each]
    rows, table = turn_rows(agents, PPOArgs())
    assert [len(row.response_ids) for row in rows] == [2] * batch.turns
    assert [sum(row.rewards) for row in rows] == [turn.reward for one in batch.episodes for turn in one.turns]
    pairs_match.assert_advantages(table, batch_episodes(agents), batch.episodes)


def test_ten_updates_of_self_play(model: Path) -> None:
    pairs_match.register()
    sizes = {"rollout_batch_size_per_device": 4, "train_batch_size": 4, "max_train": 40}
    run = train(arguments(model, env=[pairs_match.ID], advantage="rae", **sizes))
    assert len(run.batches) == 10
    steps = {step: run.training_episodes[8 * step : 8 * step + 8] for step in range(10)}
    assert all(info["rollout/episodes"] == 8 for info in run.learner.info)
    assert all("agent/second/return" in info for info in run.learner.info)
    pairs_match.assert_trained_with_rae(run.batches, steps, matches=4, gamma=GAMMA)
