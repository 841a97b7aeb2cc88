"""Train an agent to guess a number in few turns, with verl's own trainer and one reward per turn.

    python examples/verl_guess_the_number.py                     # a tiny model on a CPU, twenty minutes
    python examples/verl_guess_the_number.py actor_rollout_ref.model.path=Qwen/Qwen3-1.7B-Base \
        gem.max_response_tokens=512 data.max_response_length=4096 actor_rollout_ref.actor.optim.lr=1e-6 \
        trainer.n_gpus_per_node=8                                # FSDP and vLLM; several machines: docs/verl.md

Arguments are verl's flags and those of the section `gem`; they override the list below. Change `gem.env` to anything
that `gem-core list` shows.
"""

import os
import sys
import tempfile
from pathlib import Path

import torch

from gem_tiny import tiny_policy

FLAGS = [
    "gem.env=game:GuessTheNumber-v0-easy",
    "gem.max_response_tokens=4",  # of one turn; a real model needs 512 or more
    "gem.report=runs/verl_guess_the_number",  # folder for curve.png and metrics.jsonl
    "algorithm.adv_estimator=rebn",  # rebn_loo, reinforce, grpo, drgrpo, rloo, or gae with verl's critic
    "algorithm.gamma=0.95",  # per turn
    "data.train_batch_size=128",  # episodes of a batch
    "data.max_response_length=512",  # tokens of all that follows the first prompt of an episode
    "actor_rollout_ref.actor.ppo_mini_batch_size=128",  # the whole batch, so one update for each
    "actor_rollout_ref.actor.optim.lr=1e-3",  # for a real model about 1e-6
    "actor_rollout_ref.actor.optim.lr_scheduler_type=cosine",
    "trainer.total_training_steps=120",
    "trainer.val_before_train=False",
]
WARM_START_STEPS = int(os.environ.get("WARM_START_STEPS", "800"))


def main(flags: list[str]) -> None:
    tiny = not any(flag.startswith("actor_rollout_ref.model.path=") for flag in flags)
    cpu = swap_for_cpu() if tiny else []
    from gem_verl import compose, train

    config = compose([*FLAGS, *cpu, *flags])
    if tiny:
        config.actor_rollout_ref.model.path = save_tiny_policy(config.gem.env, config.gem.seed)
    train(config)


def swap_for_cpu() -> list[str]:
    """What verl needs on a CPU, which is with the tests, and what suits a tiny model."""
    sys.path.append(str(Path(__file__).parents[1] / "tests/adapters/verl"))
    from verl_on_cpu import settings

    os.environ.update(settings.environment())
    actor = "actor_rollout_ref.actor"
    small = [f"{actor}.entropy_coeff=0.025", f"{actor}.optim.clip_grad=0.5", f"{actor}.optim.betas=[0.9,0.95]"]
    return [*settings.overrides(tempfile.mkdtemp(prefix="ray")), *small, f"{actor}.optim.weight_decay=0"]


def save_tiny_policy(env: str, seed: int) -> str:
    """A model of 100k parameters that knows the words and the action format, but not how to play."""
    print(f"Warm start: {WARM_START_STEPS} steps on random valid play, for words and format only.")
    torch.set_num_threads(1)  # a tiny model only loses time to more
    folder = tempfile.mkdtemp(prefix="tiny")
    for part in tiny_policy(env, warm_start_steps=WARM_START_STEPS, seed=seed):
        part.save_pretrained(folder)
    return folder


if __name__ == "__main__":
    main(sys.argv[1:])
