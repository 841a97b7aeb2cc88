"""Starting verl, and the end of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from gem_train.report import RunReport
from gem_verl import _launch as launch


def test_after_ctrl_c_the_curve_is_drawn(configure, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """The trainer is a Ray actor, which is killed with this process."""

    def interrupted(*_: object, **__: object) -> None:
        RunReport(9, "test", live=False, folder=tmp_path).update(1, {"episode/success": 0.5})
        raise KeyboardInterrupt

    monkeypatch.setattr(launch, "run_ppo", interrupted)
    with pytest.raises(KeyboardInterrupt):
        launch.train(configure(f"gem.report={tmp_path}"))
    assert (tmp_path / "curve.png").read_bytes()[:4] == b"\x89PNG"
