"""ROLL's processes are killed one after another while environments do not return: `nox -s adapters -- killed.py`."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_learning import CORRIDOR

from gem_support.killed_run import DRIVER, ENV_ID, MODULE, stuck
from gem_support.training_run import EXAMPLES, SECONDS

pytestmark = [pytest.mark.timeout(SECONDS * 2), pytest.mark.needs_roll]


@pytest.mark.parametrize("victim", [DRIVER, r"ray::TurnActorWorker", r"ray::InferWorker", r"ray::EnvironmentWorker"])
def test_a_killed_run_leaves_nothing(victim: str, tmp_path: Path):
    own = [f"gem.env={ENV_ID}", f"+gem.modules=[{MODULE}]", "+gem.env_timeout=20", f"gem.report={tmp_path}/report"]
    own += [f"output_dir={tmp_path}/output", f"logging_dir={tmp_path}/logs"]
    own += [f"checkpoint_config.output_dir={tmp_path}/checkpoints"]
    with stuck([str(EXAMPLES / "roll_guess_the_number.py"), *CORRIDOR, *own], tmp_path) as run:
        run.kill(victim)
