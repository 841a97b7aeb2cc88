"""Which versions a run was made with: those that its adapter names, and the commit of a clone."""

from __future__ import annotations

import importlib
import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest

from gem_core.plugins import manager
from gem_core.specs import AdapterSpec
from gem_train._run_versions import versions_of
from gem_train.recording import record, stop_recording
from gem_train.records import open_records
from gem_train.settings import RunSettings

ADAPTERS = sorted(path.parents[1].name for path in Path(__file__).parents[2].glob("*/gem_*/plugin.py"))
DEMO = AdapterSpec("demo", "gem_demo", distribution="pluggy", versions=("numpy", "gem-nowhere"))
CLONE = AdapterSpec("clone", "gem_clone", distribution="gem_cloned", clone="https://example.org/x", versions=("numpy",))


class DemoSettings(RunSettings):
    """The settings of a run of an adapter."""

    adapter = DEMO


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.org"]
    done = subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the package of a framework in it, on the path; not yet a repository."""
    folder = tmp_path / "clone"
    package = folder / "gem_cloned"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (folder / "setup.py").write_text("setup(name='gem_cloned', version='0.3.0')\n")
    monkeypatch.syspath_prepend(folder)
    return folder


def test_they_are_of_what_the_adapter_names_and_is_installed() -> None:
    assert versions_of(DEMO) == {name: version(name) for name in ("gem-core", "pluggy", "numpy")}
    assert versions_of(None) == {"gem-core": version("gem-core")}


def test_a_clone_has_its_commit(clone: Path) -> None:
    git(clone, "init", "--quiet")
    git(clone, "add", ".")
    git(clone, "commit", "--quiet", "--message", "all")
    git(clone, "tag", "v9")
    commit = git(clone, "rev-parse", "HEAD")
    assert versions_of(CLONE)["gem_cloned"] == f"0.3.0+{commit}"
    (clone / "setup.py").write_text("# changed\nsetup(name='gem_cloned', version='0.3.1')\n")
    assert versions_of(CLONE)["gem_cloned"] == f"0.3.1+{commit}-dirty"


def test_a_folder_that_is_no_repository_has_none(clone: Path) -> None:
    git(clone.parent, "init", "--quiet")  # of somebody who keeps a copy of the framework
    git(clone.parent, "add", ".")
    git(clone.parent, "commit", "--quiet", "--message", "all")
    assert versions_of(CLONE)["gem_cloned"] == "0.3.0"


def test_without_git_a_clone_has_its_version(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(clone, "init", "--quiet")
    assert versions_of(CLONE)["gem_cloned"] == "0.3.0", "nothing is committed"
    monkeypatch.setenv("PATH", str(clone))
    assert versions_of(CLONE)["gem_cloned"] == "0.3.0"


def test_a_clone_that_is_not_there_has_no_version() -> None:
    assert versions_of(CLONE) == {name: version(name) for name in ("gem-core", "numpy")}


def test_a_run_records_them(tmp_path: Path) -> None:
    try:
        record(DemoSettings(env=["game:Corridor-v0"], record="full", record_folder=str(tmp_path)))
    finally:
        stop_recording()
    assert open_records(tmp_path).versions == versions_of(DEMO)


@pytest.mark.parametrize("name", ADAPTERS)
def test_the_settings_of_every_adapter_know_its_registration(name: str) -> None:
    (adapter,) = (one.spec for one in manager.registrations("gem_adapters", name))
    kinds = vars(importlib.import_module(f"{adapter.entry_point}.settings")).values()
    (known,) = (one.adapter for one in kinds if isinstance(one, type) and RunSettings in one.__bases__)
    assert (known.id, known.distribution, known.versions) == (adapter.id, adapter.distribution, adapter.versions)
    assert {"torch", "transformers"} <= {*adapter.versions}
