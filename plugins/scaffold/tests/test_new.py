"""`gem-core new`: what it writes passes its own tests as it is, once it is installed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from gem_core.cli._app import app

COMMON = {
    ".github/workflows/tests.yml",
    ".gitignore",
    "README.md",
    "gem_word_maze/__init__.py",
    "gem_word_maze/plugin.py",
    "gem_word_maze/py.typed",
    "pyproject.toml",
    "tests/test_plugin.py",
}
IDS = {"env": "word-maze:WordMaze-v0", "tool": "word-maze:WordMaze", "estimator": "word-maze:clipped"}


def new(*args: str) -> Any:
    return CliRunner().invoke(app, ["new", *args])


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*command: str, site: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(site)}
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=environment, capture_output=True, text=True, timeout=200
    )


def test_a_plugin_passes_its_own_tests_and_the_checks_untouched(empty_folder: Path) -> None:
    """It has the files of all kinds."""
    result = new("plugin", "word-maze")
    assert result.exit_code == 0
    folder, site = empty_folder / "gem-word-maze", empty_folder / "site"
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--disable-pip-version-check", "--target", str(site)]
    installed = run("-m", "pip", "install", *options, str(folder), site=site, folder=empty_folder)
    assert installed.returncode == 0, installed.stderr
    tested = run("-m", "pytest", "-q", "-p", "no:cacheprovider", site=site, folder=folder)
    assert tested.returncode == 0, tested.stdout
    for id_ in IDS.values():
        assert f"gem-core check {id_}" in result.stdout
        checked = run("-m", "gem_core", "check", id_, site=site, folder=empty_folder)
        assert checked.returncode == 0, checked.stdout + checked.stderr
    listed = run("-m", "gem_core", "list", "word-maze", site=site, folder=empty_folder).stdout
    assert {"Environments", "Tools", "Estimators"} <= {*listed.splitlines()}
    assert all(id_ in listed for id_ in IDS.values())


@pytest.mark.parametrize("kind", ["env", "tool", "estimator"])
def test_each_kind_has_its_files_and_no_others(kind: str, empty_folder: Path) -> None:
    assert new(kind, "word-maze", "--folder", "a place/of mine").exit_code == 0
    folder = empty_folder / "a place" / "of mine"
    written = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert written == COMMON | {f"gem_word_maze/{kind}.py", f"tests/test_{kind}.py"}
    texts = "".join((folder / path).read_text() for path in written)
    assert IDS[kind] in texts
    assert not any(id_ in texts for other, id_ in IDS.items() if other != kind and id_ not in IDS[kind])
    assert "${{ matrix.python }}" in texts, "GitHub's own placeholder"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["envv", "maze"], "there is no kind 'envv'. Did you mean 'env'? Give one of: env, tool, estimator, plugin"),
        (["env", "Maze"], "'Maze' cannot be the name of a plugin"),
        (["env", "2048"], "'2048' cannot be the name of a plugin"),
        (["env", "../maze"], "'../maze' cannot be the name of a plugin"),
        (["env", "m" * 31], "at most 30 lower-case letters"),
        (["env", "math"], "(plugin 'math') has the name 'math'. Give another name"),
        (["tool", "core"], "the Python package 'gem_core' exists"),
    ],
)
def test_a_name_that_cannot_work_is_refused(args: list[str], words: str, empty_folder: Path) -> None:
    result = new(*args)
    assert result.exit_code == 1
    assert words in result.stderr
    assert [*empty_folder.iterdir()] == []


def test_the_name_of_an_installed_distribution_is_refused(empty_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`pip install` would replace it, as upstream's, whose package has another name."""
    metadata = empty_folder / "site" / "Gem_LLM-0.1.0.dist-info" / "METADATA"
    metadata.parent.mkdir(parents=True)
    metadata.write_text("Metadata-Version: 2.1\nName: Gem_LLM\nVersion: 0.1.0\n")
    monkeypatch.syspath_prepend(str(empty_folder / "site"))
    result = new("env", "llm")
    assert result.exit_code == 1
    assert "the distribution 'gem-llm' is installed, and pip would replace it. Give another name" in result.stderr
    assert not (empty_folder / "gem-llm").exists()


def test_nothing_is_overwritten(empty_folder: Path) -> None:
    (empty_folder / "mine").mkdir()
    (empty_folder / "mine" / "notes").write_text("keep")
    (empty_folder / "file").write_text("keep")
    for name in ("mine", "file"):
        result = new("env", "maze", "--folder", name)
        assert result.exit_code == 1
        assert f"'{name}' is not an empty folder. Give another one with --folder" in result.stderr
    assert [path.read_text() for path in (empty_folder / "mine" / "notes", empty_folder / "file")] == ["keep", "keep"]
    assert len([*empty_folder.rglob("*")]) == 3
