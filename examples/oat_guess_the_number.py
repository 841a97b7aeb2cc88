"""Train an agent to guess a number in few turns, with Oat's own actors and learners and one reward per turn.

    python examples/oat_guess_the_number.py                  # a tiny model on a CPU
    python examples/oat_guess_the_number.py --pretrain Qwen/Qwen3-1.7B-Base --gpus 8 --no-collocate \
        --generate_max_length 512 --max_model_len 4096 --learning_rate 1e-6 --train_batch_size_per_device 2

Arguments are Oat's flags and those of `GemOatArgs`; they override the list below. `gem-core list` has all of `--env`.
"""

import os
import sys
import tempfile
from pathlib import Path

FLAGS = {
    "--env": "game:GuessTheNumber-v0-easy",
    "--max_train": "15360",  # episodes: 120 batches
    "--advantage": "rebn",  # rebn_loo, reinforce, grpo, drgrpo, rloo, or gae with Oat's critic
    "--report": "runs/oat_guess_the_number",  # folder for curve.png and metrics.jsonl
    "--save_path": "runs/oat_guess_the_number/oat",
    "--gamma": "0.95",  # per turn
    "--beta": "0",  # no reference model
    "--rollout_batch_size_per_device": "128",  # episodes that one learner trains on for a batch
    "--train_batch_size": "128",  # the whole batch of one learner, so one update for each
    "--train_batch_size_per_device": "16",  # rows, of which each turn is one, in a forward pass
    "--generate_max_length": "4",  # of one turn; a real model needs 512 or more
    "--max_model_len": "512",  # of a whole episode
    "--learning_rate": "1e-3",  # for a real model about 1e-6
    "--lr_scheduler": "constant",
    "--lr_warmup_ratio": "0",
    "--eval_steps": "-1",  # no evaluation
    "--gpus": "1",
    "--collocate": None,
}
WARM_START_STEPS = int(os.environ.get("WARM_START_STEPS", "800"))


def main(flags: list[str]) -> None:
    given = {flag.split("=")[0].replace("--no-", "--") for flag in flags}
    defaults = [part for flag, value in FLAGS.items() if flag not in given for part in (flag, value) if part]
    tiny = "--pretrain" not in given
    cpu = swap_for_cpu() if tiny else []
    from oat.args import get_default_args

    from gem_oat import GemOatArgs, run

    sys.argv[1:] = [*defaults, *cpu, *flags]
    args = get_default_args(GemOatArgs)
    if tiny:
        args.pretrain = save_tiny_policy(args.env)
    run(args)


def swap_for_cpu() -> list[str]:
    """What Oat needs on a CPU, which is with the tests; without Launchpad and vLLM also stand-ins for those."""
    sys.path.append(str(Path(__file__).parents[1] / "tests/adapters/oat"))
    import oat_on_cpu

    return oat_on_cpu.prepare()


def save_tiny_policy(env: list[str]) -> str:
    """A model of 100k parameters that knows the words and the action format, but not how to play."""
    import torch

    from gem_tiny import tiny_policy

    print(f"Warm start: {WARM_START_STEPS} steps on random valid play, for words and format only.")
    torch.set_num_threads(1)  # a tiny model only loses time to more
    folder = tempfile.mkdtemp(prefix="tiny")
    for part in tiny_policy(env, warm_start_steps=WARM_START_STEPS, seed=0):
        part.save_pretrained(folder)
    return folder


if __name__ == "__main__":
    main(sys.argv[1:])
