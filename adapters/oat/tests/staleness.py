"""Sampling ahead in Oat at length: `nox -s adapters -- staleness.py`."""

from __future__ import annotations

from pathlib import Path

import pytest
from runs import arguments, train

from gem_support.fifty_updates import UPDATES, assert_bounded_records
from gem_support.training_run import SECONDS

pytestmark = pytest.mark.timeout(SECONDS * 2)


def test_the_bound_holds_for_fifty_updates(model: Path, tmp_path: Path) -> None:
    sizes = {"max_staleness": 1, "max_train": UPDATES * 12}
    run = train(arguments(model, **sizes, record="full", record_folder=str(tmp_path)))
    assert len(run.learner.info) == UPDATES
    assert_bounded_records(tmp_path, bound=1, batch=12)
