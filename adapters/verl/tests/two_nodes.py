"""verl on two nodes of a Ray cluster, as `python -m gem_verl` on a real one: `nox -s adapters -- two_nodes.py`.

Run as a program, it is that training.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from gem_cpu import verl as cpu
from gem_cpu.processes import python_path, ray_folder
from gem_support.training_run import SECONDS, launch

pytestmark = pytest.mark.timeout(SECONDS * 2)

STEPS = 3
FLAGS = [
    "trainer.nnodes=2",
    "actor_rollout_ref.rollout.agent.num_workers=2",
    "gem.env=test:Babble-v0",
    "gem.modules=[node_spy]",
    "actor_rollout_ref.model.external_lib=node_spy",
    "gem.record=full",
    "gem.max_response_tokens=6",
    "data.max_prompt_length=128",
    "data.max_response_length=256",
    "data.train_batch_size=16",
    "actor_rollout_ref.actor.ppo_mini_batch_size=16",
    f"trainer.total_training_steps={STEPS}",
    "trainer.val_before_train=False",
]


def test_it_trains_and_plays_on_both_nodes(model_folder: Path, tmp_path: Path):
    from runs import Run

    from gem_support.raylets import noted_nodes
    from gem_train.records import open_records

    report = [f"gem.report={tmp_path}/report", f"actor_rollout_ref.model.path={model_folder}"]
    command = [sys.executable, __file__, *FLAGS, *report, f"trainer.default_local_dir={tmp_path}/checkpoints"]
    run = launch(Run, command, tmp_path, {"PYTHONPATH": python_path(Path(__file__).parent)})
    assert run.code == 0, run.output[-3000:]
    assert len(run.metrics) == STEPS
    trained = [one for one in open_records(tmp_path / "report").summaries if one.split == "train"]
    assert len(trained) == STEPS * 16
    for actor in ("agent_loop_worker", "WorkerDict"):  # that plays, and that trains
        nodes = noted_nodes(tmp_path, actor)
        print(f"{len(nodes)} processes {actor} on {len({*nodes})} nodes")
        assert len(nodes) == len({*nodes}) == 2
    assert run.left == []


def main() -> None:
    """Train with the flags of the command line, on a cluster of two nodes with one device each."""
    os.environ.update(cpu.environment())
    from gem_support.raylets import two_nodes

    with ray_folder() as folder, two_nodes(folder) as address:
        flags = [one for one in cpu.overrides(folder) if "ray_init" not in one]
        from gem_verl import compose, train

        train(compose([*flags, f"+ray_kwargs.ray_init.address={address}", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
