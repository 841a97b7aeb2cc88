"""Sampling ahead in TRL at length: `nox -s adapters -- staleness.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gem_support.fifty_updates import UPDATES, assert_bounded_records
from gem_support.training_run import SECONDS

pytestmark = pytest.mark.timeout(SECONDS * 2)


def test_the_bound_holds_for_fifty_updates(trainer: Any, tmp_path: Path):
    trainer(max_steps=UPDATES, max_staleness=2, correction="tis", record="full", record_folder=str(tmp_path)).train()
    assert_bounded_records(tmp_path, bound=2, batch=8)
