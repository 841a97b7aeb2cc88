"""Two learners (gloo), each with its actor, trained with each setting: one global batch, one set of weights."""

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
from runs import GAMMA

from gem_support.brute_force import expected
from gem_support.ports import unused_port
from gem_support.same_tasks import SETTINGS, assert_first_batch
from gem_train.records import open_records

HERE = Path(__file__).parent


GLOBAL_BATCH = ["rebn", "rebn_loo", "grpo"]
FIRST_BATCH = "first_batch"


def _settings(folder: Path) -> dict[str, dict[str, Any]]:
    batches = {
        advantage: {
            "advantage": advantage,
            "group_size": 2,
            "rollout_batch_size_per_device": 8,
            "train_batch_size": 16,
            "train_batch_size_per_device": 2,
            "max_train": 32,
            "record": "full",
            "record_folder": str(folder / advantage / "records"),
        }
        for advantage in GLOBAL_BATCH
    }
    sizes = {"rollout_batch_size_per_device": 4, "train_batch_size": 8, "train_batch_size_per_device": 2}
    batches[FIRST_BATCH] = {**SETTINGS, **sizes, "max_train": 8, "max_model_len": 1024}
    first, *_ = batches
    batches[first]["master_port"] = unused_port()  # the processes meet in the first run, and stay connected
    return batches


@pytest.fixture(scope="module")
def trained(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with what both ranks saved, for each of the settings."""
    folder = tmp_path_factory.mktemp("two_ranks")
    command = [sys.executable, str(HERE / "two_ranks.py"), str(folder), str(model), json.dumps(_settings(folder))]
    processes = [
        subprocess.Popen(
            command,
            env={**os.environ, "ROLE": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        for process in processes:
            output, _ = process.communicate(timeout=280)
            assert process.returncode == 0, output[-3000:]
    finally:
        for process in processes:
            process.kill()
    return folder


def _ranks(folder: Path) -> list[dict[str, Any]]:
    return [pickle.loads((folder / f"rank{rank}.pkl").read_bytes()) for rank in range(2)]


@pytest.mark.parametrize("advantage", GLOBAL_BATCH)
def test_advantages_cover_the_global_batch(trained: Path, advantage: str):
    ranks = _ranks(trained / advantage)
    records = open_records(trained / advantage / "records")
    assert records.gaps == []
    for batch in range(2):
        episodes = [one for rank in ranks for one in rank["turns"][batch]]
        seeds = [[summary.seed for summary in rank["summaries"][batch]] for rank in ranks]
        assert {*seeds[0]}.isdisjoint(seeds[1])
        groups = [[summary.group_id for summary in rank["summaries"][batch]] for rank in ranks]
        assert {*groups[0]}.isdisjoint(groups[1])
        rewards = [[turn.rewards[-1] for turn in one] for one in episodes]
        numbers = expected(advantage, rewards, [*groups[0], *groups[1]], GAMMA)
        want = sorted(
            (tuple(turn.prompt_ids), tuple(turn.response_ids), number)
            for one, row in zip(episodes, numbers, strict=True)
            for turn, number in zip(one, row, strict=True)
        )
        got = sorted((one.before, one.ids, one.advantage) for rank in ranks for one in rank["trained"][batch])
        assert [one[:2] for one in got] == [one[:2] for one in want]
        assert [one[2] for one in got] == pytest.approx([one[2] for one in want], abs=1e-5)
        ids = {summary.id for rank in ranks for summary in rank["summaries"][batch]}
        assert {one.id for one in records.summaries if one.update == batch + 1} == ids
        assert ranks[0]["metrics"][batch]["rollout/turns"] == ranks[1]["metrics"][batch]["rollout/turns"] == len(want)
    assert ranks[0]["rows"] == ranks[1]["rows"], "each rank has as many, or an update would wait for ever"
    for name, value in ranks[0]["weights"].items():
        torch.testing.assert_close(value, ranks[1]["weights"][name])


def test_the_seed_decides_the_first_batch(trained: Path):
    ranks = _ranks(trained / FIRST_BATCH)
    played = [[(one.env_id, one.seed) for one in rank["summaries"][0]] for rank in ranks]
    assert [len(one) for one in played] == [4, 4]
    assert_first_batch([*played[0], *played[1]])
