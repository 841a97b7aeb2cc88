"""Train an agent to guess a number in few turns, with verl's own trainer and one reward per turn.

    python verl_guess_the_number.py                     # a tiny model on a CPU, 20 minutes
    python verl_guess_the_number.py actor_rollout_ref.model.path=Qwen/Qwen3-1.7B-Base \
        gem.max_response_tokens=512 data.max_response_length=4096 actor_rollout_ref.actor.optim.lr=1e-6 \
        trainer.n_gpus_per_node=8                       # FSDP and vLLM; several machines: adapters/verl/README.md

Arguments are verl's flags and those of the section `gem`; they override the lists below. Change `gem.env` to anything
that `gem-core list` shows.
"""

import os
import sys

FLAGS = [
    "gem.env=game:GuessTheNumber-v0-easy",
    "gem.max_response_tokens=4",  # of one turn; a real model needs 512 or more
    "gem.report=runs/verl_guess_the_number",  # folder for curve.png, metrics.jsonl and records
    "gem.record=full",  # for `gem-core view`
    "algorithm.adv_estimator=rebn",  # rebn_loo, reinforce, grpo, drgrpo, rloo, gigpo, or gae with verl's critic
    "algorithm.gamma=0.95",  # per turn
    "data.train_batch_size=128",  # episodes of a batch
    "data.max_response_length=512",  # tokens of an episode after its first prompt
    "actor_rollout_ref.actor.ppo_mini_batch_size=128",  # the whole batch, so one update for each
    "actor_rollout_ref.actor.optim.lr=1e-3",  # for a real model about 1e-6
    "actor_rollout_ref.actor.optim.lr_scheduler_type=cosine",
    "trainer.total_training_steps=120",
    "trainer.val_before_train=False",
]
TINY = [  # for the tiny model
    "actor_rollout_ref.actor.entropy_coeff=0.025",
    "actor_rollout_ref.actor.optim.clip_grad=0.5",
    "actor_rollout_ref.actor.optim.betas=[0.9,0.95]",
    "actor_rollout_ref.actor.optim.weight_decay=0",
]
WARM_START_STEPS = int(os.environ.get("WARM_START_STEPS", "800"))


def main(flags: list[str]) -> None:
    if not any(flag.startswith("actor_rollout_ref.model.path=") for flag in flags):
        train_on_cpu(flags)
        return
    from gem_verl import compose, train

    train(compose([*FLAGS, *flags]))


def train_on_cpu(flags: list[str]) -> None:
    """Train on a CPU, with a tiny model that knows the action format but not how to play."""
    from gem_cpu.verl import on_cpu

    with on_cpu() as needed:
        from gem_tiny import saved_tiny_policy
        from gem_verl import compose, train
        from gem_verl.checks import check

        config = compose([*FLAGS, *TINY, *needed, *flags])
        with saved_tiny_policy(check(config), warm_start_steps=WARM_START_STEPS) as model:
            config.actor_rollout_ref.model.path = model
            train(config)


if __name__ == "__main__":
    main(sys.argv[1:])
