"""The exported page, without a browser."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from made_up import Plan, damage_episode, write_run
from typer.testing import CliRunner

from gem_core.cli._app import app
from gem_core.installation import install_line
from gem_train.records import open_records
from gem_viewer._folder import MARK
from gem_viewer._page import names_of, write_page


@pytest.fixture
def run(tmp_path: Path) -> Path:
    write_run(tmp_path / "run", Plan(updates=1, tasks=2, repeats=2))
    return tmp_path / "run"


def data(page: Path, name: str) -> Any:
    found = re.search(
        rb'<script type="application/json" id="%s">(.*?)</script>' % name.encode(), page.read_bytes(), re.S
    )
    assert found is not None
    return json.loads(found[1])


def exported(run: Path, page: Path | str, *options: str) -> Any:
    return CliRunner().invoke(app, ["view", str(run), "--export", str(page), *options])


def test_the_command_writes_one_file(run: Path, tmp_path: Path) -> None:
    page = tmp_path / "a folder" / "page.html"
    result = exported(run, page)
    assert result.exit_code == 0, result.output
    assert f"Wrote {page}" in result.output.replace("\n", "")
    assert [one.name for one in page.parent.iterdir()] == ["page.html"]
    (described,) = data(page, "runs")
    assert (described["name"], described["kind"], described["gaps"]) == ("run", "training", [])
    assert len(described["columns"]["id"]) == 4
    assert described["settings"]["advantage"] == "grpo"
    assert described["kwargs"] == {"": {"max_turns": "8"}}
    assert described["metrics"]["step"] == [1.0]
    assert page.read_bytes().count(b'<script type="text/plain"') == 1


def test_split_puts_episodes_beside_it(run: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    result = exported(run, page, "--split")
    assert result.exit_code == 0
    assert sorted(one.name for one in (tmp_path / "page_data").iterdir()) == ["0-0.js", MARK]
    assert b"text/plain" not in page.read_bytes()
    (tmp_path / "page_data" / "9-9.js").touch()  # of an earlier page
    assert exported(run, page, "--split").exit_code == 0
    assert sorted(one.name for one in (tmp_path / "page_data").iterdir()) == ["0-0.js", MARK]
    assert sorted(one.name for one in tmp_path.iterdir()) == ["page.html", "page_data", "run"]


def test_split_leaves_foreign_folders_alone(run: Path, tmp_path: Path) -> None:
    (tmp_path / "page_data").mkdir()
    (tmp_path / "page_data" / "thesis.tex").write_text("mine")
    result = exported(run, tmp_path / "page.html", "--split")
    assert result.exit_code == 1
    assert "was not written by gem-core view" in result.stderr.replace("\n", " ")
    assert (tmp_path / "page_data" / "thesis.tex").read_text() == "mine"
    named = tmp_path / "run_data"
    run.rename(named)
    (named / MARK).touch()
    for page in (tmp_path / "run.html", named / "records" / "page.html"):
        result = exported(named, page, "--split")
        assert (result.exit_code, page.exists()) == (1, False)
        assert "would lie in the run" in result.stderr.replace("\n", " ")
    assert open_records(named).summaries
    outer = tmp_path / "outer_data"
    outer.mkdir()
    (outer / MARK).touch()
    named.rename(outer / "run")
    assert exported(outer / "run", tmp_path / "outer.html", "--split").exit_code == 1
    assert open_records(outer / "run").summaries


def test_a_split_page_that_fails_leaves_the_old_folder(run: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert exported(run, page, "--split").exit_code == 0
    (tmp_path / "page_data" / "old.js").touch()
    (tmp_path / "page.html.new").mkdir()
    assert exported(run, page, "--split").exit_code == 1
    assert (tmp_path / "page_data" / "old.js").exists()
    assert not (tmp_path / "page_data.new").exists()


def test_the_policy_allows_this_page_s_scripts_and_nothing_else(run: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    exported(run, page)
    text = page.read_text()
    found = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert found is not None
    policy = found[1].replace("&#x27;", "'")
    assert "default-src 'none'" in policy
    assert not re.search(r"unsafe|https?:|\*|strict-dynamic|connect-src", policy)
    for tag in ("script", "style"):
        parts = re.findall(rf"<{tag}>(.*?)</{tag}>", text, re.S)
        assert parts
        for part in parts:
            digest = base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()
            assert f"'sha256-{digest}'" in policy


def test_data_cannot_end_its_element(tmp_path: Path) -> None:
    plan = Plan(
        updates=1, tasks=1, repeats=1, settings={"note": "</script><script>alert(1)</script><!--", "half": "\ud800"}
    )
    write_run(tmp_path / "run", plan)
    page = tmp_path / "page.html"
    assert exported(tmp_path / "run", page).exit_code == 0
    assert data(page, "runs")[0]["settings"]["note"] == plan.settings["note"]
    assert b"alert(1)</script>" not in page.read_bytes()


def test_runs_of_one_name_are_told_apart(run: Path, tmp_path: Path) -> None:
    opened = [open_records(run), open_records(run)]
    assert names_of(opened) == ["run", "run (2)"]
    write_page(opened, tmp_path / "page.html", done=lambda _: None)
    assert [one["name"] for one in data(tmp_path / "page.html", "runs")] == ["run", "run (2)"]


def test_gaps_are_said(run: Path, tmp_path: Path) -> None:
    (file,) = (run / "records").iterdir()
    file.write_bytes(file.read_bytes()[: file.stat().st_size * 9 // 10])  # killed while it wrote the update
    page = tmp_path / "page.html"
    result = exported(run, page)
    assert "ends within a record" in result.output
    assert "ends within a record" in data(page, "runs")[0]["gaps"][0]
    assert data(page, "runs")[0]["columns"]["update"] == [None] * 4


def test_what_cannot_be_shown_is_one_line(run: Path, tmp_path: Path) -> None:
    nothing = exported(tmp_path / "nothing", tmp_path / "page.html")
    assert nothing.exit_code == 1
    assert len(nothing.stderr.strip().splitlines()) == 1
    (tmp_path / "file").touch()
    unwritable = exported(run, tmp_path / "file" / "page.html")
    assert unwritable.exit_code == 1
    assert unwritable.stderr.startswith("Error: ")
    assert CliRunner().invoke(app, ["view", str(run), "--split"]).exit_code == 2


def test_a_page_that_cannot_be_written_leaves_the_old_one(run: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("old")
    (tmp_path / "page.html.new").mkdir()
    assert exported(run, page).exit_code == 1
    assert page.read_text() == "old"


def test_exports_need_no_server(run: Path, tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['starlette'] = sys.modules['uvicorn'] = None\n"
        "from gem_core.cli import main\n"
        f"sys.argv = ['gem-core', 'view', {str(run)!r}, *sys.argv[1:]]\nmain()"
    )
    page = tmp_path / "page.html"
    command = [sys.executable, "-c", code]
    assert subprocess.run([*command, "--export", str(page)], capture_output=True, timeout=240).returncode == 0
    assert page.exists()
    served = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert served.returncode == 1
    assert install_line("view") in served.stderr


def test_what_is_no_file_is_one_line(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    for page in ("", "folder"):
        for options in ((), ("--split",)):
            result = exported(run, page, *options)
            assert result.exit_code == 1
            assert "is a folder: give the name of a file" in result.stderr.replace("\n", " ")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["folder", "run"]


def test_a_damaged_episode_is_a_gap(run: Path, tmp_path: Path) -> None:
    damage_episode(run, 1)
    page = tmp_path / "page.html"
    result = exported(run, page)
    assert result.exit_code == 0, result.output
    (about,) = data(page, "runs")
    assert len(about["columns"]["id"]) == 4
    (gap,) = about["gaps"]
    assert gap.startswith("1 episode cannot be read. The first: ")
    assert "cannot be read" in result.output


def test_secrets_stay_out(tmp_path: Path) -> None:
    settings = {"hub_token": "hf_secret", "env_kwargs": {"api_key": "sk-secret", "url": "http://me:secret@host/"}}
    write_run(tmp_path / "run", Plan(updates=1, tasks=1, repeats=1, settings=settings))
    page = tmp_path / "page.html"
    assert exported(tmp_path / "run", page).exit_code == 0
    assert b"secret" not in re.sub(rb"<script>.*?</script>", b"", page.read_bytes(), flags=re.S)
    (about,) = data(page, "runs")
    assert about["kwargs"] == {"": {"api_key": "<hidden>", "url": "http://<hidden>@host/"}}


def test_a_name_that_is_no_utf8(run: Path, tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"run\xff")
    try:
        run.rename(odd)
    except OSError:
        pytest.skip("this file system has names of UTF-8 only")
    assert exported(odd, tmp_path / "page.html", "--split").exit_code == 0
    assert data(tmp_path / "page.html", "runs")[0]["name"] == "run\ufffd"


def test_the_size_counts_the_folder(run: Path, tmp_path: Path) -> None:
    written = write_page([open_records(run)], tmp_path / "page.html", split=True, done=lambda _: None)
    shards = (tmp_path / "page_data" / "0-0.js").stat().st_size
    assert written.size == (tmp_path / "page.html").stat().st_size + shards
