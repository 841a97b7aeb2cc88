"""Benchmarks that continue their series refuse to continue them with other options."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that returns the names of a benchmark, which does not run."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return lambda name: runpy.run_path(str(BENCHMARKS / f"{name}.py"), run_name=name)


def test_options_are_kept_and_compared(program, tmp_path):
    keep = program("kept_options")["keep"]
    folder = tmp_path / "series"
    keep(folder, {"rate": 0.1, "tasks": ("a", "b"), "gone": 1})
    keep(folder, {"gone": 1, "tasks": ("a", "b"), "rate": 0.1})
    before = (folder / "options.json").read_bytes()
    says = r"other options: rate was 0.1 and is 0.2; gone was 1 and is None; new was None and is 3\. Give"
    with pytest.raises(SystemExit, match=says):
        keep(folder, {"rate": 0.2, "tasks": ["a", "b"], "new": 3})
    assert (folder / "options.json").read_bytes() == before
    assert [one.name for one in folder.iterdir()] == ["options.json"]


def test_results_of_unknown_options_are_refused(program, tmp_path):
    (tmp_path / "runs.jsonl").write_text("{}\n")
    with pytest.raises(SystemExit, match=r"has files, but no options\.json"):
        program("kept_options")["keep"](tmp_path, {"rate": 0.1})
    assert [one.name for one in tmp_path.iterdir()] == ["runs.jsonl"]


def test_an_unfinished_file_of_options_is_written_again(program, tmp_path):
    (tmp_path / "options.part").write_text('{"ra')
    program("kept_options")["keep"](tmp_path, {"rate": 0.1})
    assert json.loads((tmp_path / "options.json").read_text()) == {"rate": 0.1}


def test_self_play_does_not_continue_with_another_entropy(program, tmp_path):
    kuhn = program("kuhn_selfplay")
    folder = str(tmp_path)
    options = vars(kuhn["_options"](["--output", folder]))
    free = kuhn["FREE"]
    assert {*options} - {*free} == {"updates", "matches", "every", "learning_rate", "entropy", "warm_start_steps"}
    kuhn["keep"](tmp_path, {name: value for name, value in options.items() if name not in free})
    with pytest.raises(SystemExit, match=r"entropy was 0\.3 and is 0\.1\. Give"):
        kuhn["main"](kuhn["_options"](["--output", folder, "--entropy", "0.1", "--seeds", "5", "--last", "3"]))


def test_runs_at_a_lag_do_not_continue_with_other_settings(program, tmp_path):
    lags = program("lag_seeds")
    settings = lags["settings"](lags["Options"]())
    lags["keep"](tmp_path, {**settings, "corridor.env": "other:Env-v0"})
    with pytest.raises(SystemExit, match=r"corridor\.env was 'other:Env-v0' and is "):
        lags["main"](lags["Options"](output=tmp_path))
