"""What holds of every example, without the framework that it needs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gem_core.plugins import manager
from gem_train.versions import installed_version

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def test_there_is_one_of_each_framework() -> None:
    adapters = {path.parents[1].name for path in ROOT.glob("adapters/*/gem_*/plugin.py")}
    assert {path.stem.split("_")[0] for path in EXAMPLES} == adapters


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_it_is_one_file_of_at_most_95_lines(example: Path) -> None:
    text = example.read_text()
    assert len(text.splitlines()) <= 95
    assert "__file__).parent" not in text, "nothing beside it is needed"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_without_its_framework_it_says_what_to_install(example: Path, tmp_path: Path) -> None:
    name = example.stem.split("_")[0]
    (adapter,) = (one.spec for one in manager.registrations("gem_adapters", name))
    if installed_version(adapter) is not None:
        pytest.skip(f"{adapter.distribution} is installed here, so the example would train")
    clean = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "ROLL_HOME")}
    command = [sys.executable, shutil.copy(example, tmp_path)]
    run = subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, text=True, timeout=250)
    assert run.returncode == 1
    last = run.stderr.strip().splitlines()[-1]
    assert last.startswith(f"gem_core.errors.FrameworkVersionError: the {name} adapter needs "), run.stderr[-2000:]
    assert "Next: " in last
