"""Matches as verl's rows: a row belongs to one agent, and verl counts a match once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from verl.experimental.agent_loop.agent_loop import AgentLoopMetrics

from gem_support import pairs_match
from gem_support.byte_level import byte_level_bpe
from gem_train.results import result_metrics
from gem_verl._rows import batch_episodes, batch_results, batch_table, episode_rows

VERSIONS = {"min_global_steps": 1, "max_global_steps": 1}


@pytest.mark.parametrize("kind", ["episode", "turn"])
def test_rows_and_advantages_of_every_agent(kind: Any) -> None:
    played = pairs_match.played(byte_level_bpe())
    keys, tags, extra = [], [], []
    for number in range(played.matches):
        agents = [one for one in played.episodes if one.slot == number]
        rows = episode_rows(agents, kind, VERSIONS, AgentLoopMetrics())
        for place, row in enumerate(rows):
            keys.append(f"{agents[0].task_id}_{number % 2}_{place}")
            tags.append({"prompt_len": len(row.prompt_ids)})
            # verl copies the last row's info to the others.
            extra.append({**row.extra_fields, "reward_extra_info": rows[-1].extra_fields["reward_extra_info"]})
    batch: Any = SimpleNamespace(keys=keys, tags=tags)
    pairs_match.assert_advantages(batch_table(batch, extra), batch_episodes(extra), played.episodes)
    results = batch_results(batch, extra)
    assert len(results) == played.matches
    metrics = result_metrics(results)
    assert metrics["rollout/episodes"] == len(played.episodes)
    assert metrics["rollout/dropped"] == 0
    assert "agent/second/return" in metrics


def test_the_response_of_a_row_is_what_its_agent_sampled() -> None:
    for agents in zip(*[iter(pairs_match.played(byte_level_bpe()).episodes)] * 2, strict=True):
        rows = episode_rows(agents, "episode", VERSIONS, AgentLoopMetrics())
        for row, episode in zip(rows, agents, strict=True):
            assert [*row.prompt_ids, *row.response_ids] == episode.sequences[0].ids[: episode.turns[-1].end].tolist()
            assert sum(row.response_mask) == sum(turn.end - turn.start for turn in episode.turns)
            assert sum(row.token_rewards) == episode.total_reward
