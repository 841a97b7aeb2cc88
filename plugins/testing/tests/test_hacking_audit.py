"""The page of the audit: no id is missing, and its rows are what the audit says. A few ids here and in the tests of
plugins that need packages of their own, all of them by hand with `nox -s audit`."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

AUDIT = runpy.run_path(str(Path(__file__).parents[1] / "hacking_audit.py"))
PAGE = AUDIT["PAGE"].read_text()


def test_every_id_has_a_row_or_a_reason_not_to_have_one() -> None:
    known = AUDIT["shipped"]()
    rows = {*AUDIT["rows_of"](PAGE)}
    lines = PAGE.partition(AUDIT["LEFT_OUT"])[2].splitlines()
    left_out = {found for line in lines for found in re.findall(r"`([\w.:-]+)`", line.split(" | ")[0]) if "|" in line}
    assert len(known) > 500
    assert rows == {env_id for env_id, reason in known.items() if not reason}
    assert left_out == {env_id for env_id, reason in known.items() if reason}


def test_a_bound_above_the_usual_one_has_a_reason() -> None:
    usual = AUDIT["Bound"]()
    bounds = {env_id: AUDIT["bound_of"](env_id) for env_id in AUDIT["rows_of"](PAGE)}
    assert [env_id for env_id, bound in bounds.items() if bound.reward > usual.reward and not bound.reason] == []


@pytest.mark.parametrize(
    "env_id",
    ["game:TowerofHanoi-v0-easy", "match:TicTacToe-v0", "math:Sample", "webshop:test-text", "desk:Retail-v0-hard"],
)
def test_rows_are_what_the_audit_says(env_id: str) -> None:
    assert AUDIT["stale"](env_id) is None
