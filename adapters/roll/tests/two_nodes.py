"""ROLL on two nodes of a Ray cluster: `nox -s adapters -- two_nodes.py` with `ROLL_HOME`.

Run as a program, it is that training.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from gem_cpu import roll as cpu
from gem_cpu.processes import python_path, ray_folder
from gem_cpu.roll.install import DEVICES
from gem_support.training_run import SECONDS, launch

pytestmark = [pytest.mark.timeout(SECONDS * 2), pytest.mark.needs_roll]

STEPS = 3
FLAGS = [
    "++gem.modules=[node_spy]",
    "++gem.record=full",
    "++gem.max_staleness=1",
    "rollout_batch_size=16",
    "++train_env_manager.num_env_groups=8",
    "++train_env_manager.max_env_num_per_worker=4",
    f"max_steps={STEPS}",
]


def test_it_trains_on_one_node_and_samples_on_the_other(model_folder: Path, tmp_path: Path):
    from runs import YAML, Run

    from gem_support.raylets import noted_nodes
    from gem_train.records import open_records

    report = [f"++gem.report={tmp_path}/report", f"++gem.record_folder={tmp_path}/records", f"pretrain={model_folder}"]
    command = [sys.executable, __file__, str(YAML), *FLAGS, *report]
    run = launch(Run, command, tmp_path, {"PYTHONPATH": python_path(Path(__file__).parent)})
    assert run.code == 0, run.output[-3000:]
    assert len(run.metrics) == STEPS
    trained = [one for one in open_records(tmp_path / "records").summaries if one.update is not None]
    assert len(trained) == STEPS * 16
    for name in ("actor_train", "actor_infer", "train_env"):
        nodes = noted_nodes(tmp_path, name)
        print(f"{len(nodes)} processes {name} on {len({*nodes})} nodes")
        assert nodes
    [trainer], [engine] = (noted_nodes(tmp_path, name) for name in ("actor_train", "actor_infer"))
    assert trainer != engine
    assert run.left == []


def main() -> None:
    """Train with the configuration of the command line, on a cluster of two nodes with one device each."""
    cpu.prepare()
    os.environ[DEVICES] = "1"  # of each node: the first one trains, the second one samples
    import ray
    from roll.platforms import current_platform
    from roll.utils.constants import RAY_NAMESPACE

    from gem_support.raylets import two_nodes

    with ray_folder() as folder, two_nodes(folder) as address:
        runtime = {"env_vars": current_platform.get_custom_env_vars()}
        ray.init(address=address, namespace=RAY_NAMESPACE, runtime_env=runtime)
        from gem_roll.launch import command

        path, *own = sys.argv[1:]
        command([path, *cpu.overrides(), *own])


if __name__ == "__main__":
    main()
