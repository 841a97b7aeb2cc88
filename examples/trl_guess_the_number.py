r"""Train a model to guess a number, in TRL's own GRPOTrainer, on one reward per turn.

    python examples/trl_guess_the_number.py      # a tiny model on a CPU, a few minutes; several GPUs: accelerate launch
    python examples/trl_guess_the_number.py --model Qwen/Qwen3-1.7B-Base --response-tokens 512 --micro-batch 2 \
        --learning-rate 1e-6

Change `env` to anything that `gem-core list` shows. All that TRL can do goes into `TurnGRPOConfig`.
"""

from dataclasses import dataclass

import torch
import tyro

from gem_core.rollout import recording
from gem_tiny import tiny_policy
from gem_trl import ProgressCallback, TurnGRPOConfig, TurnGRPOTrainer


@dataclass
class Options:
    model: str = "tiny"
    """Path or hub id of a chat model; `tiny` builds one on the spot and teaches it the action format first."""
    env: tuple[str, ...] = ("game:GuessTheNumber-v0-easy",)
    """Environments to train on; several share each batch."""
    advantage: str = "rebn"
    """Estimator: rebn, rebn_loo, reinforce, grpo, drgrpo or rloo."""
    gamma: float = 0.95
    """Discount per turn."""
    episodes: int = 128
    """Episodes of a batch on each process, a multiple of `micro_batch` where that is smaller."""
    micro_batch: int = 128
    """Episodes in one forward and backward pass; memory is the limit with a real model."""
    updates: int = 150
    """Updates of the policy, each on a new batch."""
    learning_rate: float = 1e-3
    """Falls linearly to zero. For a real model use about 1e-6."""
    response_tokens: int = 4
    """Token limit of one response. For a real model use 512 or more."""
    warm_start_steps: int = 800
    """Steps of next-token prediction on random valid play; only for the tiny model."""
    vllm: bool = False
    """Sample with vLLM in the same process (needs a GPU and `pip install "gem-core[vllm]"`)."""
    seed: int = 0
    """Decides the model, the games and the sampling."""
    output: str = "runs/trl_guess_the_number"
    """Folder for curve.png, metrics.jsonl and episodes.jsonl."""


def main(options: Options) -> None:
    model, tokenizer = options.model, None
    if model == "tiny":
        torch.set_num_threads(1)  # a tiny model only loses time to more
        print(f"Warm start: {options.warm_start_steps} steps on random valid play, for words and format only.")
        model, tokenizer = tiny_policy(options.env, warm_start_steps=options.warm_start_steps, seed=options.seed)
    args = TurnGRPOConfig(
        options.output,
        env=[*options.env],
        advantage=options.advantage,
        gamma=options.gamma,
        per_device_train_batch_size=min(options.micro_batch, options.episodes),
        gradient_accumulation_steps=max(options.episodes // options.micro_batch, 1),
        max_steps=options.updates,
        max_completion_length=options.response_tokens,
        learning_rate=options.learning_rate,
        entropy_coef=0.04 if options.model == "tiny" else 0.0,
        adam_beta2=0.95,
        max_grad_norm=0.5,
        use_vllm=options.vllm,
        seed=options.seed,
        logging_steps=1,
    )
    trainer = TurnGRPOTrainer(model, args, tokenizer, callbacks=[ProgressCallback(", ".join(options.env))])
    with recording(f"{options.output}/episodes.jsonl"):
        trainer.train()


if __name__ == "__main__":
    main(tyro.cli(Options))
