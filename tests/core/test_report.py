"""The report of a run: metrics with each update, files at the end, and nothing that costs what was trained."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gem_core.report import RunReport


def lines(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_metrics_are_on_disk_after_each_update(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "report"
    report = RunReport(2, "test", live=False, folder=folder)
    report.update(1, {"episode/success": 0.5})
    assert lines(folder) == [{"step": 1.0, "episode/success": 0.5}]
    report.update(2, {"episode/success": 1.0})
    assert [line["step"] for line in lines(folder)] == [1.0, 2.0]
    again = RunReport(2, "test", live=False, folder=folder)
    again.update(1, {"episode/success": 0.25})
    assert lines(folder) == [{"step": 1.0, "episode/success": 0.25}]


def test_a_resumed_run_keeps_the_updates_before_it(tmp_path: Path) -> None:
    report = RunReport(4, "test", live=False, folder=tmp_path)
    for step in (1, 2, 3):
        report.update(step, {"episode/success": step / 10})
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 4.0, "epis')  # killed while it wrote
    resumed = RunReport(4, "test", live=False, folder=tmp_path)
    resumed.update(3, {"episode/success": 0.9})  # its checkpoint is of update 2
    expected = [(1.0, 0.1), (2.0, 0.2), (3.0, 0.9)]
    assert [(line["step"], line["episode/success"]) for line in lines(tmp_path)] == expected
    resumed.save()
    assert [(line["step"], line["episode/success"]) for line in lines(tmp_path)] == expected


def test_the_end_has_what_came_late(tmp_path: Path) -> None:
    report = RunReport(1, "test", live=False, folder=tmp_path)
    report.update(1, {"episode/success": 0.5})
    report.amend(1, {"eval_episode/success": 1.0})
    assert lines(tmp_path) == [{"step": 1.0, "episode/success": 0.5, "eval_episode/success": 1.0}]
    report.save()
    assert lines(tmp_path)[0]["eval_episode/success"] == 1.0
    assert (tmp_path / "curve.png").read_bytes()[:4] == b"\x89PNG"


def test_an_evaluation_before_training_has_a_line(tmp_path: Path) -> None:
    for success in (0.1, 0.2):  # the second is a new run in the same folder
        report = RunReport(1, "test", live=False, folder=tmp_path)
        report.amend(0, {"eval_episode/success": success})
        report.update(1, {"episode/success": 0.5})
        report.save()
        expected = [{"step": 0.0, "eval_episode/success": success}, {"step": 1.0, "episode/success": 0.5}]
        assert lines(tmp_path) == expected
    RunReport(1, "test", live=False, folder=tmp_path).update(1, {})
    assert lines(tmp_path) == [{"step": 1.0}]


def test_a_resumed_run_that_is_evaluated_first(tmp_path: Path) -> None:
    report = RunReport(3, "test", live=False, folder=tmp_path)
    for step in (1, 2, 3):
        report.update(step, {"episode/success": step / 10})
    resumed = RunReport(3, "test", live=False, folder=tmp_path)
    resumed.amend(2, {"eval_episode/success": 1.0})
    resumed.update(3, {"episode/success": 0.9})
    assert [line["episode/success"] for line in lines(tmp_path)] == [0.1, 0.2, 0.9]
    assert lines(tmp_path)[1]["eval_episode/success"] == 1.0


def test_an_evaluation_that_took_longer_than_updates(tmp_path: Path) -> None:
    report = RunReport(2, "test", live=False, folder=tmp_path)
    report.update(1, {})
    report.update(2, {})
    report.amend(0, {"eval_episode/success": 1.0})
    assert [line["step"] for line in lines(tmp_path)] == [0.0, 1.0, 2.0]


def test_what_cannot_be_written_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = RunReport(1, "test", live=False, folder=tmp_path / "report")
    report.update(1, {"episode/success": 0.5})
    (tmp_path / "report" / "curve.png").mkdir()
    report.save()
    said = " ".join(capsys.readouterr().out.split())
    assert "The report could not be written" in said
    assert "Is a directory" in said


def test_without_an_update_there_is_nothing_to_write(tmp_path: Path) -> None:
    RunReport(1, "test", live=False, folder=tmp_path / "report").save()
    assert not (tmp_path / "report").exists()
