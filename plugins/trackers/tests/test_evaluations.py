"""`gem-core eval --track` and `evaluate(track=...)`: statistics while it runs and at its end, in all trackers."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import gem_evaluation._reporter
from gem_core.errors import PluginError
from gem_evaluation import evaluate
from gem_support.waiting import wait_until

ID = "game:GuessTheNumber-v0-easy"


def scalars(folder: Path, tag: str) -> list[tuple[int, float]]:
    found = EventAccumulator(str(folder))
    found.Reload()
    return [(one.step, one.value) for one in found.Scalars(tag)] if tag in found.Tags()["scalars"] else []


def command(tmp_path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    names = [sys.executable, "-m", "gem_core", "eval", ID, "--model", "random", "--output", str(tmp_path / "eval")]
    return subprocess.run([*names, *options], capture_output=True, text=True, timeout=240)


def test_the_command_tracks_in_all_and_resumes(tmp_path: Path) -> None:
    track = [word for name in ("wandb", "tensorboard", "trackio") for word in ("--track", name)]
    first = command(tmp_path, "--tasks", "5", "--json", *track)
    assert first.returncode == 0, first.stderr
    identifier = (tmp_path / "eval" / "run_id").read_text()
    second = command(tmp_path, "--tasks", "8", "--json", *track)
    results = json.loads(second.stdout)  # what trackers print is not in it
    assert (tmp_path / "eval" / "run_id").read_text() == identifier
    found = scalars(tmp_path / "eval" / "tensorboard", "episode/success")
    assert [step for step, _ in found] == [5, 8]
    assert found[-1][1] == pytest.approx(results["together"]["success"]["value"])
    assert len([*Path("wandb").glob("offline-run-*")]) == 2
    assert (tmp_path / "trackio" / "gem-core.db").exists()


def test_nothing_is_tracked_that_was_not_asked_for(tmp_path: Path) -> None:
    assert command(tmp_path, "--tasks", "2").returncode == 0
    assert {one.name for one in (tmp_path / "eval").iterdir()} == {
        ".lock", "run.json", "episodes.jsonl", "failures.jsonl", "results.json", "report.md"
    }  # fmt: skip
    assert [*Path().iterdir()] == []


def test_an_unknown_tracker_leaves_no_folder(tmp_path: Path) -> None:
    ended = command(tmp_path, "--track", "wnadb")
    assert ended.returncode != 0
    assert "no plugin named 'wnadb' is installed" in ended.stderr
    assert not (tmp_path / "eval").exists()
    with pytest.raises(PluginError, match="wnadb"):
        evaluate(ID, lambda messages: "1", tasks=1, track=["wnadb"])


def test_success_so_far_is_told_while_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gem_evaluation._reporter, "SECONDS", 0.01)
    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "all"))
    goes_on = threading.Event()
    asked = 0

    def model(messages: object) -> str:
        nonlocal asked
        asked += 1
        if asked > 6:
            goes_on.wait(60)
        return "\\boxed{1}"

    def told() -> bool:
        return any(scalars(folder, "eval/left") for folder in (tmp_path / "all").glob("*"))

    def watch() -> None:
        try:
            wait_until(told, "nothing is told while the evaluation runs")
        finally:
            goes_on.set()

    watcher = threading.Thread(target=watch)
    watcher.start()
    results = evaluate(ID, model, tasks=4, track=["tensorboard"])
    watcher.join()
    [folder] = (tmp_path / "all").iterdir()
    left = scalars(folder, "eval/left")
    assert len(left) >= 2
    assert left[0][1] > 0
    assert left[-1] == (4, 0.0)
    assert results.together.episodes.finished == 4
