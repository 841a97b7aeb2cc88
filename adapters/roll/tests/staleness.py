"""Sampling ahead in ROLL at length: `nox -s adapters -- staleness.py`."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from runs import train
from test_training import AHEAD, COMMON, model  # noqa: F401  a fixture
from transformers import AutoModelForCausalLM

from gem_support.fifty_updates import UPDATES, assert_bounded
from gem_support.training_run import SECONDS

pytestmark = [pytest.mark.timeout(SECONDS * 2), pytest.mark.needs_roll]


def test_the_bound_holds_for_fifty_updates(model: Path, tmp_path: Path):  # noqa: F811
    flags = [f"max_steps={UPDATES}", "actor_train.training_args.learning_rate=0.1"]
    assert_bounded(train(tmp_path, model, [*COMMON, *AHEAD, *flags]), bound=2, batch=10)


def test_a_bound_of_nothing_is_the_synchronous_run(model: Path, tmp_path: Path):  # noqa: F811
    """The machinery of `gem.max_staleness` with a bound of 0: the same weights after three updates."""
    weights = []
    for name, modules, bound in (("without", "roll_spy", 0), ("with", "roll_spy,bound_of_nothing", 1)):
        (tmp_path / name).mkdir()
        flags = [
            f"++gem.modules=[{modules}]",
            f"++gem.max_staleness={bound}",
            "++train_env_manager.num_env_groups=1",  # the engine's random numbers depend on the order of requests
            "actor_train.training_args.learning_rate=0.5",
            "++train_infer_correction.is_weight.enabled=false",
            "max_steps=3",
            "save_steps=1",
        ]
        run = train(tmp_path / name, model, [*COMMON, *AHEAD, *flags])
        assert run.code == 0, run.output[-3000:]
        assert {line["staleness/max"] for line in run.metrics} == {0.0}
        saved = AutoModelForCausalLM.from_pretrained(run.saved(2), dtype=torch.float32)
        weights.append(dict(saved.named_parameters()))
    start = dict(AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32).named_parameters())
    for name, one in weights[0].items():
        assert torch.allclose(one, weights[1][name], rtol=0, atol=2e-5), name
    assert max((one - start[name]).abs().max() for name, one in weights[0].items()) > 1e-3
