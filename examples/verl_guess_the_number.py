"""Train an agent to guess a number in few turns, with verl's own trainer and one reward per turn.

    python verl_guess_the_number.py                     # a tiny model on a CPU, 20 minutes
    python verl_guess_the_number.py --model smollm2     # a real one of 135M parameters, on a GPU or a CPU
    python verl_guess_the_number.py --model Qwen/Qwen3-1.7B-Base \
        gem.max_response_tokens=512 data.max_response_length=4096 actor_rollout_ref.actor.optim.lr=1e-6 \
        trainer.n_gpus_per_node=8                       # FSDP and vLLM; several machines: adapters/verl/README.md

Other arguments are verl's flags and those of the section `gem`; they override the lists below. Change `gem.env` to
anything that `gem-core list` shows.
"""

import os
import sys
from contextlib import nullcontext

FLAGS = [
    "gem.env=game:GuessTheNumber-v0-easy",
    "gem.max_response_tokens=4",  # of one turn; a real model needs 512 or more
    "gem.system_prompt=null",
    "gem.report=runs/verl_guess_the_number",  # folder for curve.png, metrics.jsonl and records
    "gem.record=full",  # for `gem-core view`
    "algorithm.adv_estimator=rebn",  # rebn_loo, reinforce, grpo, drgrpo, rloo, gigpo, or gae with verl's critic
    "algorithm.gamma=0.95",  # per turn
    "data.train_batch_size=128",  # episodes of a batch
    "data.max_response_length=512",  # tokens of an episode after its first prompt
    "actor_rollout_ref.model.lora_rank=0",  # LoRA: 16, with ten times the learning rate or more
    "actor_rollout_ref.model.lora.merge=True",  # LoRA is sampled from whole weights, rounded to bf16
    "actor_rollout_ref.actor.ppo_mini_batch_size=128",  # the whole batch, so one update for each
    "actor_rollout_ref.actor.optim.lr=1e-3",  # for a real model about 1e-6
    "actor_rollout_ref.actor.optim.lr_scheduler_type=cosine",
    "actor_rollout_ref.actor.fsdp_config.model_dtype=fp32",  # the weights; GPUs compute in bf16, CPUs in float32
    "trainer.total_training_steps=120",
    "trainer.val_before_train=False",
    "trainer.save_freq=-1",  # batches between checkpoints; one has 12 bytes for each parameter
    "trainer.default_local_dir=runs/verl_guess_the_number/checkpoints",
]
MODELS = {
    "tiny": [
        "actor_rollout_ref.actor.entropy_coeff=0.025",
        "actor_rollout_ref.actor.optim.clip_grad=0.5",
        "actor_rollout_ref.actor.optim.betas=[0.9,0.95]",
        "actor_rollout_ref.actor.optim.weight_decay=0",
    ],
    "smollm2": [
        "gem.env=game:PlainGuess-v0",  # in plain words; this model never writes a box
        "gem.max_response_tokens=6",
        "gem.system_prompt='You guess numbers.'",
        "data.train_batch_size=24",
        "actor_rollout_ref.actor.ppo_mini_batch_size=24",
        "actor_rollout_ref.actor.ppo_max_token_len_per_gpu=1024",  # of a forward pass: 0.2 MB a token in each table
        "actor_rollout_ref.actor.optim.lr=2e-5",
    ],
}
WARM_START_STEPS = int(os.environ.get("WARM_START_STEPS", "800"))  # of the tiny model: the format, not how to play


def main(arguments: list[str]) -> None:
    from gem_cpu.gpus import has_gpu
    from gem_cpu.verl import on_cpu
    from gem_train.models import named_model

    model, flags = named_model(arguments, "actor_rollout_ref.model.path")
    with nullcontext([]) if has_gpu() and model != "tiny" else on_cpu() as needed:
        from gem_tiny import policy_folder
        from gem_verl import compose, train
        from gem_verl.checks import check

        config = compose([*FLAGS, *MODELS.get(model, []), *needed, *flags])
        with policy_folder(model, check(config), warm_start_steps=WARM_START_STEPS) as folder:
            config.actor_rollout_ref.model.path = folder
            train(config)


if __name__ == "__main__":
    main(sys.argv[1:])
