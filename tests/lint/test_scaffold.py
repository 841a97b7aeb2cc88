"""What `gem-core new` writes is clean under its own settings of ruff and pyright."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gem_scaffold.project import Project

LONGEST = "a-name-as-long-as-a-name-may-be"[:30]


@pytest.mark.parametrize("name", ["maze", LONGEST])
def test_a_new_plugin_is_clean(name: str, tmp_path: Path) -> None:
    Project("plugin", name).write(tmp_path)
    pyright = ["pyright", "--pythonpath", sys.executable]
    for command in (["ruff", "check"], ["ruff", "format", "--check"], pyright):
        done = subprocess.run(
            [sys.executable, "-m", *command], cwd=tmp_path, capture_output=True, text=True, timeout=200
        )
        assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("kind", ["env", "tool", "estimator"])
def test_each_kind_is_clean(kind: str, tmp_path: Path) -> None:
    Project(kind, "maze").write(tmp_path)
    for command in (["check"], ["format", "--check"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command], cwd=tmp_path, capture_output=True, text=True, timeout=200
        )
        assert done.returncode == 0, done.stdout
