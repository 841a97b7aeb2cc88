"""OpenRLHF on two nodes of a Ray cluster, with episodes that outlast the context: `nox -s adapters -- two_nodes.py`.

Run as a program, it is that training.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

from gem_cpu import openrlhf as cpu
from gem_cpu.processes import python_path, ray_folder
from gem_support.training_run import SECONDS, launch

pytestmark = pytest.mark.timeout(SECONDS * 2)

STEPS = 2
FLAGS = [
    *("--gem.env", "test:Babble-v0", "test:Wander-v0"),
    *("--gem.env_weights", "7", "1"),
    *("--gem.compaction", "policy"),
    *("--gem.modules", "openrlhf_spy", "node_spy"),
    *("--gem.record", "full"),
    *("--gem.steps", str(STEPS)),
    *("--actor.num_gpus_per_node", "2"),
    *("--vllm.num_engines", "2"),
    *("--algo.kl.init_coef", "0"),
    *("--algo.advantage.is_correction_level", "token"),  # the spy needs the log-probabilities of vLLM
    *("--algo.advantage.is_correction_mode", "clip"),
    *("--rollout.batch_size", "16"),
    *("--rollout.micro_batch_size", "4"),
    *("--rollout.max_new_tokens", "6"),
    *("--train.batch_size", "16"),
    *("--train.micro_batch_size", "2"),
    *("--data.max_len", "640"),
    "--no-gem.truncated_is_invalid",
]


def test_it_trains_and_plays_on_both_nodes(model_folder: Path, tmp_path: Path):
    from runs import Run, trained_responses

    from gem_support.raylets import noted_nodes

    own = {
        "--gem.report": f"{tmp_path}/report",
        "--gem.record_folder": f"{tmp_path}/records",
        "--actor.model_name_or_path": str(model_folder),
        "--ckpt.path": f"{tmp_path}/checkpoints",
        "--ckpt.output_dir": f"{tmp_path}/final",
    }
    command = [sys.executable, __file__, *FLAGS, *(part for pair in own.items() for part in pair)]
    run = launch(Run, command, tmp_path, {"PYTHONPATH": python_path(Path(__file__).parent)})
    assert run.code == 0, run.output[-3000:]
    assert len(run.metrics) == STEPS
    engines, actors = (noted_nodes(tmp_path, name) for name in ("RolloutRayActor", "PolicyModelActor"))
    print(f"{len(engines)} engines on {len({*engines})} nodes, {len(actors)} actors on {len({*actors})} nodes")
    assert (len(engines), len(actors)) == (2, 2)
    assert len({*engines, *actors}) == 2
    assert run.left == []
    long = [one for one in run.episodes if one.env_id == "test:Wander-v0"]
    print(f"{len(long)} long episodes have {sorted(len(one.sequences) for one in long)} sequences")
    assert len(long) == STEPS * 2
    assert all(len(one.turns) > 24 and len(one.sequences) > 1 for one in long)
    played = Counter(
        (tuple(one.prompt_ids(turn)), tuple(one.response_ids(turn))) for one in run.episodes for turn in one.turns
    )
    sampled = Counter((tuple(one["prompt"]), tuple(one["ids"])) for one in run.sampled)
    trained = Counter((one.before, one.ids) for batch in run.batches() for one in trained_responses(batch))
    assert trained == played == sampled


def main() -> None:
    """Train with the flags of the command line, on a cluster of two nodes with two devices each."""
    cpu.prepare()
    import ray

    from gem_support.raylets import two_nodes

    with ray_folder() as folder, two_nodes(folder, devices=2) as address:
        ray.init(address=address)
        sys.argv[1:] = [*cpu.flags(), *sys.argv[1:]]
        from gem_openrlhf.__main__ import main as train

        train()


if __name__ == "__main__":
    main()
