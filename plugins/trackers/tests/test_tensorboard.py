"""Event files, as TensorBoard's own reader sees them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugin_util import markdown_to_safe_html
from tracked_training import SHOWN


def events(folder: Path) -> Any:
    found = EventAccumulator(str(folder), size_guidance={"tensors": 0})
    found.Reload()
    return found


def text(found: Any, tag: str) -> dict[int, str]:
    return {one.step: one.tensor_proto.string_val[0].decode() for one in found.Tensors(tag)}


def test_a_training_and_its_episodes_as_texts_that_stay_text(train: Run, tmp_path: Path) -> None:
    train("tensorboard")
    found = events(tmp_path / "run" / "tensorboard")
    assert {one.step: one.value for one in found.Scalars("loss")} == {1: 1.0, 2: 0.5, 3: pytest.approx(1 / 3)}
    assert [(one.step, one.value) for one in found.Scalars("eval_episode/success")] == [(1, 0.25)]
    assert json.loads(text(found, "settings")[0])["gamma"] == 0.5
    assert not any(one.name == "runs" for one in Path().iterdir())
    texts = text(found, "episodes/0")
    assert sorted(texts) == [1, 2, 3]
    lines = [line.removeprefix("    ") for line in texts[1].splitlines()]
    assert "\n".join(lines[2:]) == f"[user]\n{SHOWN}\n\n[assistant]\ngo\n\n[user]\nthe end"
    shown = markdown_to_safe_html(texts[1])
    assert "<script" not in shown
    assert "<h1>" not in shown


def test_a_resumed_training_is_one_run(train: Run, tmp_path: Path) -> None:
    train("tensorboard", 1, 2)
    train("tensorboard", 3, 4)
    assert [one.step for one in events(tmp_path / "run" / "tensorboard").Scalars("loss")] == [1, 2, 3, 4]


def test_a_folder_for_all_runs(train: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSORBOARD_LOGGING_DIR", str(tmp_path / "all"))
    train("tensorboard", 1, 1)
    identifier = (tmp_path / "run" / "run_id").read_text().strip()
    assert [one.step for one in events(tmp_path / "all" / identifier).Scalars("loss")] == [1]


PROGRAM = """
import resource, signal, sys
from gem_train.settings import RunSettings

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
settings = RunSettings(env=["game:Corridor-v0"], track=["tensorboard"])
settings.import_modules()
report = settings.open_report(50)
report.update(1, {"loss": 1.0})
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))  # writes fail, as on a full disk
for update in range(2, 50):
    report.update(update, {f"metric/{number}": 1.0 for number in range(50)})
report.save()
print("the run is over")
"""


def test_a_full_disk_costs_no_run(run: Run) -> None:
    ended = run("-c", PROGRAM)
    assert ended.stdout == "the run is over\n"
    # Not whole lines: TensorBoard's own thread prints its traceback at the same time.
    assert ended.stderr.count("goes on without it: OSError: [Errno 27] File too large") == 1, ended.stderr
    [folder] = Path("runs").iterdir()
    assert [one.step for one in events(folder).Scalars("loss")] == [1]
