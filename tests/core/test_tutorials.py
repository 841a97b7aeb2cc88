"""The tutorials that need no framework; the session `trl` runs the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from gem_core.installation import missing_from
from gem_support.tutorials import run_tutorial

TUTORIALS = [
    "first_environment",
    "first_tool",
    "first_estimator",
    "own_questions",
    "own_grader",
    "evaluating",
    "viewing",
]
EXTRAS = {"own_questions": "math", "own_grader": "math", "evaluating": "eval", "viewing": "eval"}


@pytest.mark.parametrize("name", TUTORIALS)
def test_a_tutorial_runs_as_it_is_written(name: str, tmp_path: Path) -> None:
    if name in EXTRAS and missing_from(EXTRAS[name]):
        pytest.skip(f"it needs the extra {EXTRAS[name]!r}")
    run_tutorial(name, tmp_path)
