"""Runs in trackio's local database, as its own API and reader see them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from tracked_training import SHOWN, TRAINED

Read = Callable[[], dict[str, Any]]

READER = """
import json
import trackio
from trackio.sqlite_storage import SQLiteStorage

found = {}
for run in trackio.Api().runs("gem-core"):
    found[run.name] = {
        "config": run.config,
        "logs": SQLiteStorage.get_logs("gem-core", run.name, run_id=run.id),
        "traces": SQLiteStorage.get_traces("gem-core", run.name, run_id=run.id),
    }
print(json.dumps(found))
"""


@pytest.fixture
def read(run: Run) -> Callable[[], dict[str, Any]]:
    """A function that reads all runs."""
    return lambda: json.loads(run("-c", READER).stdout)


def test_a_training_and_its_episodes(train: Run, read: Read, tmp_path: Path) -> None:
    printed = train("trackio").stdout
    [(name, run)] = read().items()
    identifier = (tmp_path / "run" / "run_id").read_text().strip()
    assert name == f"{TRAINED.replace(':', '-')}-{identifier}"
    assert run["config"]["gamma"] == 0.5
    losses = {row["step"]: row["loss"] for row in run["logs"] if "loss" in row}
    assert losses == {1: 1.0, 2: 0.5, 3: pytest.approx(1 / 3)}
    assert [(row["step"], row["eval_episode/success"]) for row in run["logs"] if "eval_episode/success" in row] == [
        (1, 0.25)
    ]
    assert "rackio" not in printed
    assert sorted(one["step"] for one in run["traces"]) == [1, 1, 2, 2, 3, 3]
    trace = run["traces"][0]
    assert trace["messages"] == [
        {"role": "user", "content": SHOWN},
        {"role": "assistant", "content": "go"},
        {"role": "user", "content": "the end"},
    ]
    assert trace["metadata"]["env_id"] == TRAINED
    assert trace["metadata"]["success"] == (int(trace["metadata"]["seed"]) % 2 == 0)


def test_a_resumed_training_is_one_run(train: Run, read: Read) -> None:
    train("trackio", 1, 2)
    train("trackio", 3, 4)
    [run] = read().values()
    assert sorted(row["step"] for row in run["logs"] if "loss" in row) == [1, 2, 3, 4]


BESIDE = """
import trackio
from tracked_training import train

trackio.init("gem-core", name="own")
trackio.log({"x": 1.0})
train("trackio", "run", 1, 1)
trackio.log({"x": 2.0})
trackio.finish()
"""


def test_it_leaves_the_program_s_own_run_alone(run: Run, read: Read) -> None:
    run("-c", BESIDE)
    found = read()
    assert len(found) == 2
    assert [row["x"] for row in found["own"]["logs"]] == [1.0, 2.0]
