"""Train an agent to guess a number in few turns, with ROLL's own agentic pipeline and one reward per turn.

ROLL is not on a package index (`roll` on PyPI is another project). Use a clone; adapters/roll/README.md has the commit
and the installation:

    ROLL_HOME=~/ROLL python roll_guess_the_number.py                    # a tiny model on a CPU, half an hour
    ROLL_HOME=~/ROLL python roll_guess_the_number.py --model smollm2    # a real one of 135M parameters, on a CPU
    PYTHONPATH=~/ROLL python -m gem_roll roll_guess_the_number_gpu.yaml # a larger one on a node of GPUs

Other arguments override the configuration below, in Hydra's grammar: `max_steps=50 gem.env=game:Corridor-v0
+gem.row=turn`.
"""

import os
import sys

RUN = "runs/roll_guess_the_number"
CONFIG = {  # everything except the section `gem` is ROLL's own
    "exp_name": "guess_the_number",
    "seed": 0,  # for weights and sampling
    "output_dir": f"{RUN}/output",
    "logging_dir": f"{RUN}/logs",
    "track_with": "stdout",  # or tensorboard, wandb, ...
    "checkpoint_config": {"type": "file_system", "output_dir": f"{RUN}/checkpoints"},
    "pretrain": "tiny",  # what --model names
    "max_steps": 120,  # batches
    "save_steps": 1000,  # and at the end; 12 bytes for each parameter
    "eval_steps": 0,  # number of steps between evaluations; 0: never
    "rollout_batch_size": 128,  # episodes of a batch
    "sequence_length": 512,  # tokens of a whole episode; every row is padded to it
    "step_reward_gamma": 0.95,  # per turn
    "loss_agg_mode": "seq-mean-token-sum",  # a sum over the tokens of an episode, divided by the episodes
    "max_grad_norm": 0.5,
    "entropy_loss_coef": 0.05,  # for the tiny model; a real one needs none
    "gem": {
        "env": "game:GuessTheNumber-v0-easy",  # or a list; `gem-core list` shows all
        "advantage": "rebn",  # rebn_loo, reinforce, grpo, drgrpo, rloo, gigpo; groups need a group_size of 2 or more
        "report": RUN,  # folder for curve.png, metrics.jsonl and records
        "record": "full",  # for `gem-core view`
        "system_prompt": None,
    },
    "train_env_manager": {
        "group_size": 1,  # episodes of each task
        "generating_args": {"max_new_tokens": 4},  # of one turn; a real model needs 512 or more
    },
    "actor_train": {
        "training_args": {
            "learning_rate": 1e-3,  # for a real model about 1e-6
            "lr_scheduler_type": "cosine",
            "weight_decay": 0,
            "per_device_train_batch_size": 16,  # rows of a micro-batch
        },
        "infer_batch_size": 16,
    },
    "actor_infer": {},
}
MODELS = {
    "smollm2": [
        "gem.env=game:PlainGuess-v0",  # in plain words; this model never writes a box
        "gem.system_prompt='You guess numbers.'",
        "rollout_batch_size=24",
        "sequence_length=96",
        "entropy_loss_coef=0",
        "train_env_manager.generating_args.max_new_tokens=6",
        "actor_train.training_args.learning_rate=2e-5",
        "actor_train.training_args.per_device_train_batch_size=8",
        "actor_train.infer_batch_size=8",
    ],
}
WARM_START_STEPS = int(os.environ.get("WARM_START_STEPS", "800"))  # of the tiny model: the format, not how to play


def main(arguments: list[str]) -> None:
    from gem_cpu.roll import on_cpu
    from gem_train.models import named_model

    model, overrides = named_model(arguments, "pretrain")
    with on_cpu() as needed:
        from omegaconf import OmegaConf

        from gem_roll import compose, train
        from gem_roll.checks import check
        from gem_tiny import policy_folder

        config = compose(CONFIG, [*needed, *MODELS.get(model, []), *overrides])
        settings = check(OmegaConf.to_container(config, resolve=True))
        with policy_folder(model, settings, warm_start_steps=WARM_START_STEPS) as folder:
            config.pretrain = folder
            train(config)


if __name__ == "__main__":
    main(sys.argv[1:])
