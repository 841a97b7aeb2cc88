"""Names of models that packages declare."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from gem_core.errors import DuplicateIdError, MissingExtraError, PluginLoadError
from gem_train.models import model_folder, model_names

Declare = Callable[..., None]
SOURCE = """
from gem_core.errors import MissingExtraError

def folder(): return __import__("pathlib").Path("/models/maze")
def needy(): raise MissingExtraError("maze needs walls")
def broken(): raise OSError("the disk is full")
"""


@pytest.fixture
def declare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Declare:
    site = tmp_path / "site"
    site.mkdir()
    (site / "maze_models.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(site)

    def write(package: str, **functions: str) -> None:
        info = site / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = [f"{name} = maze_models:{function}" for name, function in functions.items()]
        (info / "entry_points.txt").write_text("\n".join(["[gem_core.models]", *lines]))

    return write


def test_a_declared_name_is_a_folder_and_any_other_stays(declare: Declare) -> None:
    declare("maze", maze="folder")
    assert model_folder("maze") == "/models/maze"
    assert model_folder("Qwen/Qwen3-1.7B-Base") == "Qwen/Qwen3-1.7B-Base"
    assert "maze" in model_names()


def test_a_folder_of_that_name_comes_first(declare: Declare, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    declare("maze", maze="folder")
    (tmp_path / "maze").mkdir()
    monkeypatch.chdir(tmp_path)
    assert model_folder("maze") == "maze"


def test_errors_say_whose_they_are(declare: Declare) -> None:
    declare("maze", needy="needy", broken="broken", gone="gone", twice="folder")
    declare("cave", twice="folder")
    with pytest.raises(MissingExtraError, match="maze needs walls"):
        model_folder("needy")
    with pytest.raises(PluginLoadError, match=r"the model 'broken' \(maze_models:broken\) failed.*the disk is full"):
        model_folder("broken")
    with pytest.raises(PluginLoadError, match=r"the model 'gone' \(maze_models:gone\)"):
        model_folder("gone")
    with pytest.raises(DuplicateIdError, match="declared by cave and maze"):
        model_folder("twice")


def test_smollm2_without_its_extra_says_what_to_install() -> None:
    (entry,) = (one for one in entry_points(group="gem_core.models") if one.name == "smollm2")
    assert entry.value == "gem_smollm2:smollm2_folder"
    hidden = "import sys; sys.modules['torch'] = None"
    program = f"{hidden}\nfrom gem_train.models import model_folder\nmodel_folder('smollm2')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "MissingExtraError: SmolLM2 needs " in done.stderr
    assert "[smollm2]" in done.stderr
