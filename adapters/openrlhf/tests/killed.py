"""OpenRLHF's processes are killed one after another while calls do not return: `nox -s adapters -- killed.py`."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_learning import CORRIDOR

from gem_support.killed_run import DRIVER, ENV_ID, MODULE, stuck
from gem_support.training_run import EXAMPLES, SECONDS

pytestmark = pytest.mark.timeout(SECONDS * 2)


@pytest.mark.parametrize("victim", [DRIVER, r"ray::TurnPolicyActor", r"ray::RolloutRayActor", r"VLLM::EngineCore"])
def test_a_killed_run_leaves_nothing(victim: str, tmp_path: Path):
    own = [
        "--gem.env",
        ENV_ID,
        "--gem.modules",
        MODULE,
        "--gem.env_timeout",
        "20",
        "--gem.report",
        f"{tmp_path}/report",
    ]
    with stuck([str(EXAMPLES / "openrlhf_guess_the_number.py"), *CORRIDOR, *own], tmp_path) as run:
        run.kill(victim)
