"""Sampling ahead in OpenRLHF at length: `nox -s adapters -- staleness.py`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from runs import train
from test_training import COMMON

from gem_support.fifty_updates import UPDATES, assert_bounded
from gem_support.training_run import SECONDS
from gem_train.records import open_records

pytestmark = pytest.mark.timeout(SECONDS * 2)


FLAGS = [
    *COMMON,
    *("--gem.env", "test:Babble-v0"),
    *("--gem.max_staleness", "2"),
    *("--rollout.batch_size", "8"),
    *("--rollout.micro_batch_size", "2"),
    *("--train.batch_size", "8"),
    *("--train.micro_batch_size", "2"),
    *("--algo.kl.init_coef", "0"),
]
TOGETHER = ["--train.partial_rollout_enable"]


@pytest.mark.parametrize("more", [[], TOGETHER], ids=["one batch", "batches together"])
def test_the_bound_holds_for_fifty_updates(more: list[str], model_folder: Path, tmp_path: Path):
    flags = ["--gem.steps", str(UPDATES), "--ckpt.save_steps", "-1", *more]
    assert_bounded(train(tmp_path, model_folder, [*FLAGS, *flags]), bound=2, batch=8)


def test_a_resumed_run_continues_with_the_tasks_after_its_checkpoint(model_folder: Path, tmp_path: Path):
    """The first run has batches under way when it saves after update 3. It ends after update 5."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    run = train(first, model_folder, [*FLAGS, *TOGETHER, "--gem.steps", "5", "--ckpt.save_steps", "3"])
    assert run.code == 0, run.output[-3000:]
    shutil.copytree(first / "checkpoints", second / "checkpoints")
    shutil.copytree(first / "report", second / "report")
    run = train(second, model_folder, [*FLAGS, *TOGETHER, "--gem.steps", "8", "--ckpt.load_enable"])
    assert run.code == 0, run.output[-3000:]
    batches = trained(first), trained(second)
    assert [*batches[0]] == [1, 2, 3, 4, 5]
    assert [*batches[1]] == [4, 5, 6, 7, 8]
    assert all(len(seeds) == 8 for seeds in (*batches[0].values(), *batches[1].values()))
    assert [batches[1][update] for update in (4, 5)] == [batches[0][update] for update in (4, 5)]
    assert {0, 1, 2} >= {one.staleness for one in open_records(second / "records").summaries if one.summary.turns}


def trained(folder: Path) -> dict[int, set[int]]:
    """The seeds of the episodes that each update trained on."""
    found: dict[int, set[int]] = {}
    for one in open_records(folder / "records").summaries:
        if one.split == "train":
            found.setdefault(one.update, set()).add(one.summary.seed)
    return dict(sorted(found.items()))
