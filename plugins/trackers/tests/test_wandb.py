"""Runs in Weights & Biases, offline, as its own reader of the offline file sees them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from tracked_training import SHOWN, TRAINED


def runs() -> list[Path]:
    return sorted(Path("wandb").glob("offline-run-*/run-*.wandb"))


def inspected(file: Path, *options: str) -> str:
    command = [sys.executable, "-m", "wandb", "leet", "inspect", "--json", *options, str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=240).stdout


def history(file: Path) -> list[dict[str, Any]]:
    records = map(json.loads, inspected(file).splitlines())
    return [one["history"]["item"] for one in records if one["type"] == "history"]


def test_a_training_and_its_episodes(train: Run) -> None:
    train("wandb")
    [file] = runs()
    rows = history(file)
    assert {row["step"]: row["loss"] for row in rows if "loss" in row} == {1: 1.0, 2: 0.5, 3: pytest.approx(1 / 3)}
    [evaluated] = [row for row in rows if "eval_episode/success" in row]
    assert (evaluated["step"], evaluated["eval_episode/success"]) == (1, 0.25)
    summary = json.loads(inspected(file, "--summary"))
    assert (summary["name"], summary["project"], summary["state"]) == (TRAINED, "gem-core", "finished")
    assert summary["config"]["gamma"] == 0.5
    assert summary["exit_code"] == 0
    assert summary["run_id"] == Path("../run/run_id").read_text().strip()
    tables = sorted({row["episodes.path"] for row in rows if "episodes.path" in row})
    assert len(tables) == 3
    table = json.loads((file.parent / "files" / tables[0]).read_text())
    assert table["columns"][:3] == ["env_id", "task_id", "data_index"]
    assert len(table["data"]) == 2
    episode = dict(zip(table["columns"], table["data"][0], strict=True))
    assert episode["conversation"] == f"[user]\n{SHOWN}\n\n[assistant]\ngo\n\n[user]\nthe end"
    assert episode["success"] == (int(episode["seed"]) % 2 == 0) == (episode["return"] == 1.0)


def test_a_resumed_training_goes_on_with_the_same_run(train: Run) -> None:
    train("wandb", 1, 2)
    train("wandb", 3, 4)
    first, second = runs()
    ids = {json.loads(inspected(file, "--summary"))["run_id"] for file in (first, second)}
    assert len(ids) == 1  # offline a file each, which `wandb sync` puts together
    assert [row["step"] for row in history(second) if "loss" in row] == [3, 4]


BESIDE = """
import wandb
from tracked_training import train

with wandb.init(id="own") as own:
    train("wandb", "run", 1, 1)
    own.log({"x": 1.0})
    assert wandb.run is own
"""


def test_it_leaves_the_program_s_own_run_alone(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_PROJECT", "mine")
    run("-c", BESIDE)
    by_id = {json.loads(inspected(file, "--summary"))["run_id"]: file for file in runs()}
    assert len(by_id) == 2
    assert [row["x"] for row in history(by_id["own"])] == [1.0]
    assert {json.loads(inspected(file, "--summary"))["project"] for file in by_id.values()} == {"mine"}
