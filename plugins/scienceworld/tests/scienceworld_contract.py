"""The conformance kit on a task of ScienceWorld: minutes, so `nox -s scienceworld -- FILE` runs it by hand."""

from __future__ import annotations

import pytest

pytest.importorskip("scienceworld")

from gem_testing import check_env


@pytest.mark.timeout(3600)  # hundreds of starts of 0.1 s of CPU
def test_it_keeps_the_contract() -> None:
    check_env("scienceworld:find-plant-v0", max_turns=6, simplifications=("openDoors",))
