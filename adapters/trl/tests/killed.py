"""TRL's process is killed while environments do not return: `nox -s adapters -- killed.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from gem_support.killed_run import DRIVER, ENV_ID, stuck
from gem_support.training_run import EXAMPLES, SECONDS

pytestmark = pytest.mark.timeout(SECONDS * 2)


def test_a_killed_run_leaves_nothing(tmp_path: Path):
    flags = ["--env", ENV_ID, "--episodes", "16", "--warm-start-steps", "20", "--output", f"{tmp_path}/report"]
    with stuck([str(EXAMPLES / "trl_guess_the_number.py"), *flags], tmp_path) as run:
        run.kill(DRIVER)
