"""Trackers that are absent, raise or hold several sources: one line, and no run is lost."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from conftest import Run
from tracked_training import TRAINED

from gem_core.episode import Source
from gem_core.installation import install_line
from gem_trackers._tracking import Tracking


def said(ended: subprocess.CompletedProcess[str], name: str) -> list[str]:
    return [line for line in ended.stderr.splitlines() if line.startswith(f"{name} ")]


@pytest.mark.parametrize("name", ["wandb", "tensorboard", "trackio"])
def test_a_package_that_is_not_installed(
    name: str, train: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What Python raises for a package that is nowhere.
    (tmp_path / f"{name}.py").write_text(f"raise ModuleNotFoundError('No module named', name={name!r})")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ['PYTHONPATH']}")
    ended = train(name)
    assert said(ended, name) == [
        f"{name} could not begin; training {TRAINED} goes on without it: the module '{name}' is not installed. "
        f"Next: {install_line(name)}"
    ]
    assert "Traceback" not in ended.stderr
    assert len((tmp_path / "run" / "metrics.jsonl").read_text().splitlines()) == 3


def test_a_run_without_a_login(train: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "online")
    monkeypatch.setenv("WANDB_API_KEY", "short")
    [line] = said(train("wandb"), "wandb")
    assert line.startswith(f"wandb could not begin; training {TRAINED} goes on without it: ")


def test_a_folder_that_cannot_be_written(train: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "file"))
    [line] = said(train("tensorboard"), "tensorboard")
    assert line.startswith("tensorboard could not begin; ")


def test_each_source_is_tracked_by_itself(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tracking = Tracking("tensorboard", "gem_trackers.tensorboard:TensorBoardTracker")
    folder = tmp_path / "all"
    sources = [
        Source(str(number), "training", "test", folder=str(folder / str(number)), track=["tensorboard"])
        for number in range(2)
    ]
    untracked = Source("2", "training", "test", folder=str(folder / "2"))
    for one in (*sources, untracked):
        tracking.gem_metrics_start(one)
    tracking.gem_metrics(sources[0], 1, {"loss": "no number"})  # type: ignore[dict-item]
    for one in (*sources, untracked):
        tracking.gem_metrics(one, 2, {"loss": 1.0})
        tracking.gem_metrics_end(one)
        tracking.gem_metrics(one, 3, {"loss": 1.0})
    assert [one.getMessage().split(";")[0] for one in caplog.records] == ["tensorboard failed at step 1"]
    assert {one.name for one in folder.iterdir()} == {"0", "1"}
    sizes = [next((folder / name / "tensorboard").iterdir()).stat().st_size for name in "01"]
    assert sizes[1] > sizes[0] > 0
