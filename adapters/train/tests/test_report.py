"""The report of a run: metrics with each update, files at the end, and nothing that costs what was trained."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gem_support.waiting import wait_until
from gem_train.report import RunReport, curve_at_the_end


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
    report.amend(0, {"eval_episode/success": 0.0})
    for step in (1, 2, 3):
        report.update(step, {"episode/success": step / 10, "loss": float("nan")})
    with (tmp_path / "metrics.jsonl").open("ab") as file:
        file.write(b'null\n[1]\n{"loss": 1}\n{"step": "1"}\n\xff\n{"step": 2.0, "epis')  # killed while it wrote
    for _ in range(2):
        resumed = RunReport(4, "test", done=2, live=False, folder=tmp_path)
        resumed.amend(2, {"eval_episode/success": 1.0})
        resumed.update(3, {"episode/success": 0.9})
        for found in (lines(tmp_path), resumed.history):
            assert [(line["step"], line.get("episode/success")) for line in found] == [
                (0, None),
                (1, 0.1),
                (2, 0.2),
                (3, 0.9),
            ]
            assert found[2]["eval_episode/success"] == 1.0
            assert found[2]["loss"] != found[2]["loss"]
            assert "loss" not in found[3]


def test_a_run_that_goes_on_without_metrics(tmp_path: Path) -> None:
    RunReport(9, "test", done=7, live=False, folder=tmp_path / "new").update(8, {"loss": 1.0})
    assert lines(tmp_path / "new") == [{"step": 8.0, "loss": 1.0}]


def test_a_new_run_begins_anew(tmp_path: Path) -> None:
    """Also where it reports seldom, or an evaluation first."""
    for first in (0, 1, 10):
        report = RunReport(20, "test", live=False, folder=tmp_path)
        for step in (1, 10, 20):
            report.update(step, {"old": 1.0})
        RunReport(20, "test", live=False, folder=tmp_path).amend(first, {"new": 1.0})
        assert lines(tmp_path) == [{"step": first, "new": 1.0}]


def test_an_evaluation_is_in_the_line_of_its_update(tmp_path: Path) -> None:
    report = RunReport(2, "test", live=False, folder=tmp_path)
    report.update(1, {"loss": 1.0})
    report.amend(2, {"eval": 2.0})  # some frameworks evaluate before they report
    report.update(2, {"loss": 2.0})
    report.amend(0, {"eval": 0.0})  # and some go on training meanwhile
    assert lines(tmp_path) == [
        {"step": 0.0, "eval": 0.0},
        {"step": 1.0, "loss": 1.0},
        {"step": 2.0, "eval": 2.0, "loss": 2.0},
    ]


@pytest.mark.parametrize(("session", "command"), [("learn", ".nox/learn/bin/gem-core"), (None, "gem-core")])
def test_the_last_line_is_a_command_of_the_users_shell(
    session: str | None,
    command: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The PATH of nox ends with nox."""
    program = tmp_path / ".nox" / "learn" / "bin" / "gem-core"
    program.parent.mkdir(parents=True)
    program.touch(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(program.parent))
    monkeypatch.setenv("NOX_CURRENT_SESSION", session or "")
    if session is None:
        monkeypatch.delenv("NOX_CURRENT_SESSION")
    (tmp_path / "run" / "records").mkdir(parents=True)
    report = RunReport(1, "test", folder="run")
    report.update(1, {"episode/success": 1.0})
    report.save()
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == f"To look at the run: {command} view run --export page.html"


def test_what_could_not_be_written_is_there_later(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = RunReport(3, "test", live=False, folder=tmp_path / "report")
    (tmp_path / "report").write_text("a file")
    report.update(1, {})
    report.amend(1, {"eval": 1.0})
    assert capsys.readouterr().out.count("The metrics could not be written") == 2
    (tmp_path / "report").unlink()
    report.update(2, {})
    assert lines(tmp_path / "report") == [{"step": 1.0, "eval": 1.0}, {"step": 2.0}]


def test_what_is_on_disk_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = RunReport(3, "test", live=False, folder=tmp_path)
    report.update(1, {})
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", _full)
        report.amend(1, {"eval": 1.0})
    assert lines(tmp_path) == [{"step": 1.0}]
    report.save()
    assert lines(tmp_path) == [{"step": 1.0, "eval": 1.0}]


def _full(*_: object) -> None:
    raise OSError("no space left on device")


def test_an_update_costs_the_same_however_many_there_were(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    report = RunReport(3, "test", live=False, folder=tmp_path)
    report.update(1, {})
    monkeypatch.setattr(Path, "replace", _full)
    report.update(2, {})
    assert len(lines(tmp_path)) == 2


def test_what_cannot_be_written_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = RunReport(1, "test", live=False, folder=tmp_path / "report")
    report.update(1, {"episode/success": 0.5})
    (tmp_path / "report" / "curve.png").mkdir()
    report.save()
    said = "".join(capsys.readouterr().out.split())  # long paths break anywhere
    assert "curve.pngcouldnotbewritten" in said
    assert "Isadirectory" in said


def test_without_an_update_there_is_nothing_to_write(tmp_path: Path) -> None:
    RunReport(1, "test", live=False, folder=tmp_path / "report").save()
    assert not (tmp_path / "report").exists()


# Ray and Launchpad do the same: training is in another process, which is killed when this one ends.
PROGRAM = """
import subprocess, sys, time
from gem_train.report import RunReport, curve_at_the_end

if len(sys.argv) == 3:
    sys.stdin.read()
    report = RunReport(9, "test", live=False, folder=sys.argv[1])
    report.update(1, {"episode/success": 0.5})
    report.update(2, {"episode/success": 0.75})
    time.sleep(600)
with curve_at_the_end(sys.argv[1], "test"):
    command = [sys.executable, __file__, sys.argv[1], "train"]
    trainer = subprocess.Popen(command, start_new_session=True, stdin=subprocess.PIPE)
    try:
        trainer.stdin.close()  # it begins only now, so Ctrl-C comes where the trainer is killed
        trainer.wait()
    finally:
        trainer.kill()
"""


def test_after_ctrl_c_the_curve_is_drawn_although_the_trainer_was_killed(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    folder = tmp_path / "report"
    process = subprocess.Popen([sys.executable, program, folder], stdout=subprocess.PIPE, text=True)
    try:
        written = folder / "metrics.jsonl"
        wait_until(lambda: process.poll() is not None or (written.exists() and len(lines(folder)) == 2))
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate()
    finally:
        process.kill()
    assert process.returncode == -signal.SIGINT, "it ends as any program does"
    assert f"Wrote curve.png and metrics.jsonl to {folder}/" in said
    assert (folder / "curve.png").read_bytes()[:4] == b"\x89PNG"


def test_a_curve_that_shows_everything_is_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    with curve_at_the_end(tmp_path, "test"):
        report = RunReport(2, "test", live=False, folder=tmp_path)
        report.update(1, {"episode/success": 0.5})
        report.save()
        saved = (tmp_path / "curve.png").stat()
    assert (tmp_path / "curve.png").stat().st_mtime_ns == saved.st_mtime_ns
    os.utime(tmp_path / "curve.png", (0, 0))
    with curve_at_the_end(tmp_path, "test"):
        pass
    assert (tmp_path / "curve.png").stat().st_mtime > 0
    assert {path.name for path in tmp_path.iterdir()} == {"curve.png", "metrics.jsonl"}
    assert capsys.readouterr().out.count("Wrote") == 2


def test_without_a_report_nothing_is_drawn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for folder in (None, tmp_path / "none"):
        with curve_at_the_end(folder, "test"):
            pass
    assert capsys.readouterr().out == ""
    assert not [*tmp_path.iterdir()]


def test_an_error_passes_through_also_where_the_curve_cannot_be_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "metrics.jsonl").mkdir()
    with pytest.raises(KeyboardInterrupt), curve_at_the_end(tmp_path, "test"):
        raise KeyboardInterrupt
    assert "curve.png could not be drawn" in capsys.readouterr().out
