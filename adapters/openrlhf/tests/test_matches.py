"""Matches as OpenRLHF's samples: a sample is a match, and its rows belong to its agents."""

from __future__ import annotations

from typing import Any

import pytest

from gem_openrlhf._experience import batch_episodes, training_rows
from gem_openrlhf._rows import EpisodeRows
from gem_support import pairs_match
from gem_support.byte_level import byte_level_bpe
from gem_train.results import result_metrics


@pytest.mark.parametrize("kind", ["episode", "turn"])
def test_rows_and_advantages_of_every_agent(kind: Any) -> None:
    played = pairs_match.played(byte_level_bpe())
    samples = [
        EpisodeRows.played([one for one in played.episodes if one.slot == slot], kind) for slot in range(played.matches)
    ]
    results = [one for sample in samples for one in sample.each]
    rows, table = training_rows(results, 3, 1)
    assert len(rows) % 3 == 0
    pairs_match.assert_advantages(table, batch_episodes(results, table), played.episodes)
    assert result_metrics(results)["rollout/episodes"] == len(played.episodes)


def test_a_dropped_match_is_one_sample_without_rows() -> None:
    assert EpisodeRows.played([], "episode") == EpisodeRows()
