"""Train an agent to guess a number in few turns, with OpenRLHF's own training and one reward per turn.

    python openrlhf_guess_the_number.py                  # a tiny model on a CPU, 13 minutes
    python openrlhf_guess_the_number.py --actor.model_name_or_path Qwen/Qwen3-1.7B-Base \
        --rollout.max_new_tokens 512 --data.max_len 4096 --actor.adam.lr 1e-6 --actor.num_gpus_per_node 4 \
        --vllm.num_engines 4                             # several machines: adapters/openrlhf/README.md

Arguments are OpenRLHF's flags and `--gem.*`; they override the list below. `gem-core list` shows all values of
`--gem.env`. OpenRLHF's engines import this file for its `AgentExecutor`, so environments can be registered here.
"""

import os
import sys

from gem_openrlhf import GemAgentExecutor

FLAGS = {
    "--gem.env": "game:GuessTheNumber-v0-easy",
    "--gem.steps": "120",  # batches
    "--gem.advantage": "rebn",  # rebn_loo, reinforce, grpo, drgrpo, rloo, gigpo, or gae with OpenRLHF's critic
    "--gem.report": "runs/openrlhf_guess_the_number",  # folder for curve.png, metrics.jsonl and records
    "--gem.record": "full",  # for `gem-core view`
    "--algo.advantage.gamma": "0.95",  # per turn
    "--algo.advantage.is_correction_level": "token",  # vLLM's probabilities differ slightly from the trainer's: vllm_kl
    "--algo.kl.init_coef": "0",  # no reference model
    "--rollout.batch_size": "128",  # episodes of a batch
    "--rollout.micro_batch_size": "16",
    "--rollout.max_new_tokens": "4",  # of one turn; a real model needs 512 or more
    "--data.max_len": "512",  # of a whole episode
    "--train.batch_size": "128",  # the whole batch, so one update for each
    "--train.micro_batch_size": "16",
    "--actor.adam.lr": "1e-3",  # for a real model about 1e-6
    "--ckpt.save_steps": "20",  # with --ckpt.load_enable, a stopped run continues from the last checkpoint
    "--ckpt.path": "runs/openrlhf_guess_the_number/ckpt",
    "--ckpt.output_dir": "runs/openrlhf_guess_the_number/model",
}
TINY = ["--actor.entropy_coef", "0.05", "--actor.max_norm", "0.5"]  # for the tiny model
WARM_START_STEPS = int(os.environ.get("WARM_START_STEPS", "800"))


class AgentExecutor(GemAgentExecutor):
    """OpenRLHF looks for this name in the file."""


def main(flags: list[str]) -> None:
    flags = [*(part for pair in FLAGS.items() for part in pair), *flags]
    if not any(flag.startswith("--actor.model_name_or_path") for flag in flags):
        train_on_cpu([*TINY, *flags])
        return
    from gem_openrlhf import launch

    launch(__file__, flags)


def train_on_cpu(flags: list[str]) -> None:
    """Train on a CPU, with a tiny model that knows the action format but not how to play."""
    from gem_cpu.openrlhf import on_cpu

    with on_cpu() as needed:
        from gem_openrlhf import check_command, launch
        from gem_tiny import saved_tiny_policy

        flags = [*needed, *flags, "--actor.model_name_or_path"]
        settings = check_command([*flags, "tiny"])
        with saved_tiny_policy(settings, warm_start_steps=WARM_START_STEPS) as model:
            launch(__file__, [*flags, model])


if __name__ == "__main__":
    main(sys.argv[1:])
