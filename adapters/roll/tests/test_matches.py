"""Matches as ROLL's rows: each agent has a trajectory of its own."""

from __future__ import annotations

from typing import Any

import pytest

from gem_roll._rows import METADATA, RowMetadata, columns, training_rows, turn_table
from gem_support import pairs_match
from gem_support.byte_level import byte_level_bpe
from gem_train.results import EpisodeResult, episode_ids


@pytest.mark.parametrize("kind", ["episode", "turn"])
def test_rows_and_advantages_of_every_agent(kind: Any) -> None:
    batch = pairs_match.played(byte_level_bpe())
    metadata: list[RowMetadata] = []
    names: list[str] = []
    for slot in range(batch.matches):
        agents = [one for one in batch.episodes if one.slot == slot]
        played = [(EpisodeResult(one.summary()), training_rows(one, kind)) for one in agents]
        found = columns(
            played, env_id=pairs_match.ID, env=slot, group=slot // 2, episode=f"e{slot}", task_name=f"t{slot // 2}"
        )
        metadata += [RowMetadata.decode(text) for text in found[METADATA]]
        names += found["traj_id"].tolist()
        totals = [one.total_reward for (_, rows), one in zip(played, agents, strict=True) for _ in rows]
        assert found["episode_scores"].tolist() == pytest.approx(totals)
    assert len({*names}) == len(batch.episodes)
    ids = episode_ids(metadata, [bool(one.turns) for one in metadata])
    pairs_match.assert_advantages(turn_table(metadata, names), ids, batch.episodes)
