"""Matches as Oat's transitions: the collector counts a match once, and the learner gets every agent."""

from __future__ import annotations

import pairs_match
from byte_level import byte_level_bpe
from oat.algorithms.ppo import PPOArgs

from gem_oat.transitions import batch_episodes, batch_items, turn_rows


def test_rows_and_advantages_of_every_agent() -> None:
    batch = pairs_match.played(byte_level_bpe())
    items = batch_items(batch, batch.matches + 1)
    assert [len(one.each) for one in items] == [2] * batch.matches + [1]
    agents = [one for item in items for one in item.each]
    rows, table = turn_rows(agents, PPOArgs())
    assert [len(row.response_ids) for row in rows] == [2] * batch.turns
    assert [sum(row.rewards) for row in rows] == [turn.reward for one in batch.episodes for turn in one.turns]
    pairs_match.assert_advantages(table, batch_episodes(agents), batch.episodes)
