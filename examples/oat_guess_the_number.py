"""Train an agent to guess a number in few turns, with Oat's own actors and learners and one reward per turn.

    python oat_guess_the_number.py                  # a tiny model on a CPU
    python oat_guess_the_number.py --model smollm2  # a real one of 135M parameters, on a GPU or a CPU
    python oat_guess_the_number.py --model Qwen/Qwen3-1.7B-Base --gpus 8 --no-collocate \
        --generate_max_length 512 --max_model_len 4096 --learning_rate 1e-6 --train_batch_size_per_device 2

Other arguments are Oat's flags and those of `GemOatArgs`; they override the list below. `gem-core list` shows all
values of `--env`.
"""

import os
import sys

FLAGS = {
    "--env": "game:GuessTheNumber-v0-easy",
    "--max_train": "15360",  # episodes: 120 batches
    "--advantage": "rebn",  # rebn_loo, reinforce, grpo, drgrpo, rloo, gigpo, or gae with Oat's critic
    "--report": "runs/oat_guess_the_number",  # folder for curve.png, metrics.jsonl and records
    "--record": "full",  # for `gem-core view`
    "--save_path": "runs/oat_guess_the_number/oat",
    "--save_steps": "-1",  # batches between saved models; one is also saved at the end then
    "--gamma": "0.95",  # per turn
    "--beta": "0",  # no reference model
    "--rollout_batch_size_per_device": "128",  # episodes of a batch, for each learner
    "--train_batch_size": "128",  # the whole batch of one learner, so one update for each
    "--train_batch_size_per_device": "16",  # rows in a forward pass; each turn is a row
    "--generate_max_length": "4",  # of one turn; a real model needs 512 or more
    "--max_model_len": "512",  # of a whole episode
    "--lora_rank": "0",  # LoRA: 16, with ten times the learning rate or more
    "--learning_rate": "1e-3",  # for a real model about 1e-6; weights are bf16 on a GPU, with --no-bf16 float32
    "--lr_scheduler": "constant",
    "--lr_warmup_ratio": "0",
    "--eval_steps": "-1",  # no evaluation
    "--gpus": "1",
    "--collocate": None,
}
MODELS = {
    "smollm2": {
        "--env": "game:PlainGuess-v0",  # in plain words; this model never writes a box
        "--system_prompt": "You guess numbers.",
        "--max_train": "960",
        "--rollout_batch_size_per_device": "24",
        "--train_batch_size": "24",
        "--train_batch_size_per_device": "8",
        "--generate_max_length": "6",
        "--learning_rate": "2e-5",
    },
}
WARM_START_STEPS = int(os.environ.get("WARM_START_STEPS", "800"))  # of the tiny model: the format, not how to play


def main(arguments: list[str]) -> None:
    from gem_cpu.gpus import has_gpu
    from gem_cpu.oat import prepare
    from gem_train.models import named_model

    model, flags = named_model(arguments, "--pretrain")
    needed = [] if has_gpu() and model != "tiny" else prepare()
    given = {flag.split("=")[0].replace("--no-", "--") for flag in flags}
    chosen = {**FLAGS, **MODELS.get(model, {})}
    defaults = [part for flag, value in chosen.items() if flag not in given for part in (flag, value) if part]
    args = read([*needed, *defaults, *flags])
    from gem_oat import run
    from gem_tiny import policy_folder

    with policy_folder(model, args, warm_start_steps=WARM_START_STEPS) as folder:
        args.pretrain = folder
        run(args)


def read(flags: list[str]):
    """Parse the arguments as Oat does."""
    from oat.args import get_default_args

    from gem_oat import GemOatArgs  # before Oat, because its error explains what to do if Oat is missing

    sys.argv[1:] = flags
    return get_default_args(GemOatArgs)


if __name__ == "__main__":
    main(sys.argv[1:])
