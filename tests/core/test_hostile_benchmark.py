"""The benchmark of hostile environments in short: each episode once, attackers lose theirs, the others are equal."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "hostile_environments.py"


def test_attackers_cost_their_own_episodes_and_the_others_are_the_same_byte_for_byte(tmp_path: Path) -> None:
    arguments = ["--episodes", "240", "--slots", "12", "--workers", "2", "--json", str(tmp_path / "result")]
    run = subprocess.run([sys.executable, str(PROGRAM), *arguments], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr[-2000:]
    result = json.loads((tmp_path / "result").read_text())
    assert (result["episodes"], result["lost"], result["doubled"]) == (240, 0, 0)
    assert result["attackers"] == result["attackers that failed"] == result["failures"] > 3
    assert result["others"] == result["others that are the same byte for byte"] == 240 - result["attackers"]
