"""Sampling ahead in verl at length: `nox -s adapters -- staleness.py`."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from runs import train
from test_training import AHEAD, COMMON, model  # noqa: F401  a fixture
from transformers import AutoModelForCausalLM

from gem_cpu.verl import separate
from gem_support.fifty_updates import UPDATES, assert_bounded
from gem_support.training_run import SECONDS

pytestmark = pytest.mark.timeout(SECONDS * 2)


@pytest.mark.parametrize("devices", [[], separate()], ids=["shared devices", "separate devices"])
def test_the_bound_holds_for_fifty_updates(devices: list[str], model: Path, tmp_path: Path):  # noqa: F811
    flags = [
        *devices,
        "trainer.save_freq=-1",
        f"trainer.total_training_steps={UPDATES}",
        "actor_rollout_ref.actor.optim.lr=0.1",
    ]
    assert_bounded(train(tmp_path, model, [*COMMON, *AHEAD, *flags]), bound=2, batch=16)


def test_a_bound_of_nothing_is_the_synchronous_run(model: Path, tmp_path: Path):  # noqa: F811
    """With the machinery of `gem.max_staleness` and a bound of 0, and on separate devices: the same weights."""
    weights = []
    spied, bound = "gem.modules=[verl_spy]", "gem.modules=[verl_spy,bound_of_nothing]"
    for name, own in (("without", [spied]), ("with", [bound]), ("separate", [spied, *separate()])):
        (tmp_path / name).mkdir()
        flags = [*own, "gem.max_staleness=0", "trainer.total_training_steps=3"]
        run = train(tmp_path / name, model, [*COMMON, *AHEAD, *flags])
        assert run.code == 0, run.output[-3000:]
        assert {line["staleness/max"] for line in run.metrics} == {0.0}
        saved = tmp_path / name / "checkpoints" / "global_step_3" / "actor" / "huggingface"
        weights.append(dict(AutoModelForCausalLM.from_pretrained(saved, dtype=torch.float32).named_parameters()))
    start = dict(AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32).named_parameters())
    for name, one in weights[0].items():
        assert torch.allclose(one, weights[1][name], rtol=0, atol=2e-5), name
        assert torch.allclose(one, weights[2][name], rtol=0, atol=2e-5), name
    assert max((one - start[name]).abs().max() for name, one in weights[0].items()) > 1e-3
