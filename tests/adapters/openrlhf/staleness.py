"""Sampling ahead in OpenRLHF at length: `nox -s staleness`."""

from __future__ import annotations

from pathlib import Path

import pytest
from fifty_updates import UPDATES, assert_bounded
from runs import train
from test_training import COMMON
from training_run import SECONDS

pytestmark = pytest.mark.timeout(SECONDS * 2)


@pytest.mark.parametrize("more", [[], ["--train.partial_rollout_enable"]], ids=["one batch", "batches together"])
def test_the_bound_holds_for_fifty_updates(more: list[str], model_folder: Path, tmp_path: Path):
    flags = [
        *("--gem.env", "test:Babble-v0"),
        *("--gem.steps", str(UPDATES)),
        *("--gem.max_staleness", "2"),
        *("--rollout.batch_size", "8"),
        *("--rollout.micro_batch_size", "2"),
        *("--train.batch_size", "8"),
        *("--train.micro_batch_size", "2"),
        *("--algo.kl.init_coef", "0"),
        *("--ckpt.save_steps", "-1"),
        *more,
    ]
    assert_bounded(train(tmp_path, model_folder, [*COMMON, *flags]), bound=2, batch=8)
