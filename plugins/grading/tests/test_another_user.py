"""Grading confined for a user that is not root, where root runs the tests: all of these tests once more."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("file", ["test_confinement.py", "test_grading.py"])
def test_another_user_has_the_same(file: str) -> None:
    here = Path(__file__).parent
    options = ["-q", "-o", "addopts=", "-p", "no:cacheprovider", str(here / file)]
    done = subprocess.run(
        [sys.executable, str(here / "as_nobody.py"), "-m", "pytest", *options],
        capture_output=True, text=True, cwd=here.parents[2],
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-1000:]
