"""Train an agent to guess a number in few turns, with OpenRLHF's own training and one reward per turn.

    python openrlhf_guess_the_number.py                  # a tiny model on a CPU, 13 minutes
    python openrlhf_guess_the_number.py --model smollm2  # a real one of 135M parameters, on GPUs or a CPU
    python openrlhf_guess_the_number.py --model Qwen/Qwen3-1.7B-Base \
        --rollout.max_new_tokens 512 --data.max_len 4096 --actor.adam.lr 1e-6 --actor.num_gpus_per_node 4 \
        --vllm.num_engines 4                             # several machines: adapters/openrlhf/README.md

Other arguments are OpenRLHF's flags and `--gem.*`; they override the lists below. `gem-core list` shows all values of
`--gem.env`. OpenRLHF's engines import this file for its `AgentExecutor`, so environments can be registered here.
"""

import os
import sys
from contextlib import nullcontext

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
    "--ds.param_dtype": "bf16",  # of all weights; on a CPU they are float32
    "--ckpt.save_steps": "20",  # with --ckpt.load_enable, a stopped run continues from the last checkpoint
    "--ckpt.max_num": "1",  # of 12 bytes for each parameter
    "--ckpt.path": "runs/openrlhf_guess_the_number/ckpt",
    "--ckpt.output_dir": "runs/openrlhf_guess_the_number/model",  # what was learned, at the end
}
MODELS = {
    "tiny": {"--actor.entropy_coef": "0.05", "--actor.max_norm": "0.5"},
    "smollm2": {
        "--gem.env": "game:PlainGuess-v0",  # in plain words; this model never writes a box
        "--gem.system_prompt": "You guess numbers.",
        "--rollout.batch_size": "24",
        "--rollout.micro_batch_size": "8",
        "--rollout.max_new_tokens": "6",
        "--train.batch_size": "24",
        "--train.micro_batch_size": "8",
        "--actor.adam.lr": "2e-5",
        "--actor.num_gpus_per_node": "1",
        "--vllm.num_engines": "1",
    },
}
WARM_START_STEPS = int(os.environ.get("WARM_START_STEPS", "800"))  # of the tiny model: the format, not how to play


class AgentExecutor(GemAgentExecutor):
    """OpenRLHF looks for this name in the file."""


def main(arguments: list[str]) -> None:
    from gem_cpu.gpus import has_gpu
    from gem_cpu.openrlhf import on_cpu
    from gem_train.models import named_model

    model, flags = named_model(arguments, "--actor.model_name_or_path")
    with nullcontext([]) if has_gpu() and model != "tiny" else on_cpu() as needed:
        from gem_openrlhf import check_command, launch
        from gem_tiny import policy_folder

        chosen = {**FLAGS, **MODELS.get(model, {})}
        flags = [*needed, *(part for pair in chosen.items() for part in pair), *flags, "--actor.model_name_or_path"]
        with policy_folder(model, check_command([*flags, model]), warm_start_steps=WARM_START_STEPS) as folder:
            launch(__file__, [*flags, folder])


if __name__ == "__main__":
    main(sys.argv[1:])
