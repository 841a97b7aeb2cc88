"""Oat's process, in the lighter form, is killed while environments do not return: `nox -s adapters -- killed.py`."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_learning import CORRIDOR

from gem_support.killed_run import DRIVER, ENV_ID, MODULE, stuck
from gem_support.training_run import EXAMPLES, SECONDS

pytestmark = pytest.mark.timeout(SECONDS * 2)


def test_a_killed_run_leaves_nothing(tmp_path: Path):
    own = {"--env": ENV_ID, "--modules": MODULE, "--report": f"{tmp_path}/report", "--save_path": f"{tmp_path}/oat"}
    flags = [part for pair in {**CORRIDOR, **own}.items() for part in pair]
    with stuck([str(EXAMPLES / "oat_guess_the_number.py"), *flags], tmp_path) as run:
        run.kill(DRIVER)
