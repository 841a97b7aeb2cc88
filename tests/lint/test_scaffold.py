"""What `gem-core new` writes is clean under its own settings of ruff and pyright."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

LONGEST = "a-name-as-long-as-a-name-may-be"[:30]


def check(folder: Path, *command: str) -> None:
    done = subprocess.run([sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("kind", "name"), [("plugin", LONGEST), ("env", "maze"), ("tool", "maze"), ("estimator", "maze")]
)
def test_a_new_distribution_is_clean(kind: str, name: str, tmp_path: Path) -> None:
    check(tmp_path, "gem_core", "new", kind, name)
    check(tmp_path, "ruff", "check")
    check(tmp_path, "ruff", "format", "--check")
    if kind == "plugin":  # it has the files of all kinds
        check(tmp_path, "pyright", "--pythonpath", sys.executable)
