"""Sampling ahead in ROLL at length: `nox -s staleness`."""

from __future__ import annotations

from pathlib import Path

import pytest
from fifty_updates import UPDATES, assert_bounded
from runs import train
from test_training import AHEAD, COMMON, model  # noqa: F401  a fixture
from training_run import SECONDS

pytestmark = [pytest.mark.timeout(SECONDS * 2), pytest.mark.needs_roll]


def test_the_bound_holds_for_fifty_updates(model: Path, tmp_path: Path):  # noqa: F811
    flags = [f"max_steps={UPDATES}", "actor_train.training_args.learning_rate=0.1"]
    assert_bounded(train(tmp_path, model, [*COMMON, *AHEAD, *flags]), bound=2, batch=10)
