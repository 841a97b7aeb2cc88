"""The installed wheel, without the source tree on the path. `nox -s wheel` builds and installs it first."""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tomllib

import gem_core
from gem_core.errors import FrameworkVersionError, MissingExtraError
from gem_core.installation import install_line

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
SOURCES = {
    path.name: path for glob in ("gem_core", "adapters/*/gem_*", "plugins/*/gem_*") for path in sorted(ROOT.glob(glob))
}
EXTRAS = sorted(PROJECT["project"]["optional-dependencies"])
INSTALLED = Path(gem_core.__file__).parents[1]


def run(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A command of the environment, in a folder outside the source tree."""
    command = [str(Path(sys.executable).with_name(words[0])), *words[1:]]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=280)


def files(folder: Path) -> set[str]:
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_it_is_the_wheel_that_is_tested() -> None:
    assert INSTALLED.is_relative_to(sys.prefix)
    assert importlib.metadata.distribution("gem-core").files


@pytest.mark.parametrize("package", SOURCES)
def test_a_package_has_all_its_files_and_can_be_imported(package: str) -> None:
    """Its data, too: pages, templates, questions and the mark that it has types."""
    assert files(INSTALLED / package) == files(SOURCES[package])
    with contextlib.suppress(FrameworkVersionError, MissingExtraError):  # frameworks have environments of their own
        importlib.import_module(package)


@pytest.mark.parametrize("words", [["--version"], ["list", "game:"], ["doctor"], ["new", "env", "maze"]])
def test_a_command_runs(words: list[str], tmp_path: Path) -> None:
    done = run("gem-core", *words, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    shown = {"--version": PROJECT["project"]["version"], "list": "game:GuessTheNumber-v0-easy", "doctor": "Python"}
    assert shown.get(words[0], "maze") in done.stdout


def test_the_line_that_a_hint_gives_for_an_extra_works(tmp_path: Path) -> None:
    """It names the wheel, which has that extra; pip reads all of them in one go, and installs nothing."""
    assert sorted(importlib.metadata.metadata("gem-core").get_all("Provides-Extra") or []) == EXTRAS
    wheels: set[str] = set()
    for extra in EXTRAS:
        pip, install, requirement = shlex.split(install_line(extra))
        wheel, _, rest = requirement.partition("[")
        assert (pip, install, rest) == ("pip", "install", f"{extra}]")
        wheels.add(wheel)
    (wheel,) = wheels
    dry = ["-m", "pip", "install", "--dry-run", "--no-deps", "--no-index", f"{wheel}[{','.join(EXTRAS)}]"]
    done = run("python", *dry, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "does not provide the extra" not in done.stdout + done.stderr
