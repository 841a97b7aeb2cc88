"""The tutorials that train or sample with a model."""

from __future__ import annotations

from pathlib import Path

import pytest

from gem_support.tutorials import run_tutorial
from gem_train.records import read_episodes


@pytest.mark.parametrize("name", ["training_trl", "first_policy"])
def test_a_tutorial_runs_as_it_is_written(name: str, tmp_path: Path) -> None:
    run_tutorial(name, tmp_path)
    if name == "training_trl":
        assert any((tmp_path / "runs").rglob("curve.png"))
        assert len(list(read_episodes(tmp_path / "runs" / "elevator"))) > 100
