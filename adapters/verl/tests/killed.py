"""verl's processes are killed one after another while environments do not return: `nox -s adapters -- killed.py`."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_learning import CORRIDOR

from gem_support.killed_run import DRIVER, ENV_ID, MODULE, stuck
from gem_support.training_run import EXAMPLES, SECONDS

pytestmark = pytest.mark.timeout(SECONDS * 2)


@pytest.mark.parametrize("victim", [DRIVER, r"ray::TaskRunner", r"ray::\S*Worker", r"ray::AgentLoopWorker"])
def test_a_killed_run_leaves_nothing(victim: str, tmp_path: Path):
    own = [f"gem.env={ENV_ID}", f"gem.modules=[{MODULE}]", "gem.env_timeout=20", f"gem.report={tmp_path}/report"]
    with stuck([str(EXAMPLES / "verl_guess_the_number.py"), *CORRIDOR, *own], tmp_path) as run:
        run.kill(victim)
