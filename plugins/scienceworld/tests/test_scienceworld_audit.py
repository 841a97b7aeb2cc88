"""The rows of this package's ids in the hacking audit are what it says: a few here, all with `nox -s audit`."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

pytest.importorskip("scienceworld")

AUDIT = runpy.run_path(str(Path(__file__).parents[2] / "testing" / "hacking_audit.py"))


@pytest.mark.parametrize("name", ["find-plant-v0"])
def test_rows_are_what_the_audit_says(name: str) -> None:
    assert AUDIT["stale"](f"scienceworld:{name}") is None
