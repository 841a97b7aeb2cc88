"""Two processes under torchrun (gloo), which train once with each setting: one global batch, one set of weights."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from spy import assert_same, expected_gae, expected_responses

from gem_support.same_tasks import SETTINGS, assert_first_batch
from gem_train.rollout import Batch

HERE = Path(__file__).parent
GLOBAL_BATCH = [("rebn", "episode"), ("rebn", "turn"), ("grpo", "turn")]
FIRST_BATCH = "first_batch"
CRITIC = "critic"
RUNS: dict[str, dict[str, Any]] = {
    **{
        f"{advantage}-{row}": {"advantage": advantage, "row": row, "num_generations": 4, "max_steps": 2}
        for advantage, row in GLOBAL_BATCH
    },
    CRITIC: {"advantage": "gae", "lam": 0.8, "critic_learning_rate": 1e-2, "max_steps": 3},
    FIRST_BATCH: {**SETTINGS, "advantage": "rebn", "per_device_train_batch_size": 2},
}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    """What both ranks saved, for each of `RUNS`."""
    folder = tmp_path_factory.mktemp("two_ranks")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"]
    done = subprocess.run(
        [*command, str(HERE / "two_ranks.py"), str(folder), json.dumps(RUNS)],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(HERE)},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    said = [line for line in done.stderr.splitlines() if " active" in line]
    for advantage in ("rebn", "grpo"):
        runs = sum(changes["advantage"] == advantage for changes in RUNS.values())
        assert sum(f"{advantage} active" in line for line in said) == runs, "one rank says it, once a run"
    return {
        name: [pickle.loads((folder / name / f"rank{rank}.pkl").read_bytes()) for rank in range(2)] for name in RUNS
    }


@pytest.mark.parametrize(("advantage", "row"), GLOBAL_BATCH)
def test_advantages_cover_the_global_batch(trained, advantage, row):
    ranks = trained[f"{advantage}-{row}"]
    responses = [response for rank in ranks for response in rank["trained"]]
    wanted = []
    for first, second in zip(ranks[0]["batches"], ranks[1]["batches"], strict=True):
        assert {episode.seed for episode in first.episodes}.isdisjoint(episode.seed for episode in second.episodes)
        assert {episode.group_id for episode in first.episodes}.isdisjoint(
            episode.group_id for episode in second.episodes
        )
        wanted += expected_responses(Batch([*first.episodes, *second.episodes]), advantage, 0.9)
    assert_same(responses, wanted)
    # TRL's shared engines return completions by position: all ranks must send the same number of prompts.
    assert ranks[0]["prompts_per_call"] == ranks[1]["prompts_per_call"]
    for name, value in ranks[0]["weights"].items():
        torch.testing.assert_close(value, ranks[1]["weights"][name])


def test_a_critic_learns_from_the_global_batch(trained):
    ranks = trained[CRITIC]
    wanted = [
        response
        for rank in ranks
        for batch, values in zip(rank["batches"], rank["critic_values"], strict=True)
        for response in expected_gae(batch, values, 0.9, 0.8)
    ]
    assert_same([response for rank in ranks for response in rank["trained"]], wanted)
    assert any(value for episode in ranks[0]["critic_values"][-1] for value in episode)
    for kind in ("weights", "critic"):
        assert ranks[0][kind]
        for name, value in ranks[0][kind].items():
            torch.testing.assert_close(value, ranks[1][kind][name])


def test_the_seed_decides_the_first_batch(trained):
    ranks = trained[FIRST_BATCH]
    played = [[(episode.env_id, episode.seed) for episode in rank["batches"][0].episodes] for rank in ranks]
    assert [len(one) for one in played] == [4, 4]
    assert_first_batch([*played[0], *played[1]])
