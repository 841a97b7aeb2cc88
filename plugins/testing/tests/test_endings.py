"""No action ends as a failure of the environment, and none outlives its limit: a few ids here, all of them by hand with
`plugins/testing/endings_audit.py`."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from gem_sandbox._backends import SAFE
from gem_sandbox._choice import problems

pytestmark = pytest.mark.long

AUDIT = runpy.run_path(str(Path(__file__).parents[1] / "endings_audit.py"))


SLOW = ("stops its shell", "never returns", "nests folders")
"""It takes 14 seconds until a bash that does not answer is replaced (`plugins/sandbox/tests/test_shells.py`)."""


@pytest.mark.parametrize("name", ["python:Interpreter, keep_state", "terminal:Repair-v0"])
def test_every_action_ends_as_a_verdict_in_time(name: str, tmp_path: Path) -> None:
    if all(problems(backend) for backend in SAFE):
        pytest.skip("no safe backend works here")
    found = [*AUDIT["audited"](name, tmp_path, timeout=1.0, left_out=SLOW)]
    assert len(found) > 10
    assert [one for one in found if one.problem] == []


def test_every_id_is_audited() -> None:
    assert {"code:Sample", "code:CodeContest", "terminal:Tasks-v0", *AUDIT["TOOLS"]} <= {*AUDIT["names"]()}
