"""Trackers without a network, each test in an empty folder."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(autouse=True)
def offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What trackers write lies in the test's folder."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))


@pytest.fixture
def run() -> Run:
    """A function that runs Python with these arguments, which must succeed."""

    def start(*arguments: str) -> subprocess.CompletedProcess[str]:
        ended = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=240)
        assert ended.returncode == 0, ended.stderr
        return ended

    return start


@pytest.fixture
def train(run: Run, tmp_path: Path) -> Run:
    """A function that trains updates `first` to `last` in the folder `run`, tracked."""

    def start(track: str, first: int = 1, last: int = 3) -> subprocess.CompletedProcess[str]:
        return run("-m", "tracked_training", track, str(tmp_path / "run"), str(first), str(last))

    return start
