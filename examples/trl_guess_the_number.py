r"""Train a model to guess a number, in TRL's own GRPOTrainer, on one reward per turn.

    python trl_guess_the_number.py      # a tiny model on a CPU, a few minutes; several GPUs: accelerate launch
    python trl_guess_the_number.py --model Qwen/Qwen3-1.7B-Base --response-tokens 512 --micro-batch 2 \
        --learning-rate 1e-6

Change `env` to anything that `gem-core list` shows. All settings of TRL are fields of `TurnGRPOConfig`.
`gem-core eval ENV --model OUTPUT/model` evaluates the trained model. trl_smollm2.py trains a real one on a CPU.
"""

import sys
from dataclasses import dataclass

from gem_trl import TurnGRPOConfig, TurnGRPOTrainer


@dataclass
class Options:
    model: str = "tiny"  # path or hub id of a chat model, or smollm2; `tiny` builds one that knows the action format
    lora: int = 0  # rank of LoRA adapters on all linear layers; 0 trains all weights
    bf16: bool | None = None  # compute in bfloat16; by default on a GPU only
    env: tuple[str, ...] = ("game:GuessTheNumber-v0-easy",)  # environments to train on; several share each batch
    system_prompt: str | None = None  # first message of each conversation
    advantage: str = "rebn"  # estimator: rebn, rebn_loo, reinforce, grpo, drgrpo, rloo, turn_grpo, gigpo or gae
    gamma: float = 0.95  # discount per turn
    episodes: int = 64  # per batch, on each process
    micro_batch: int = 64  # episodes in one forward and backward pass; limited by memory with a real model
    updates: int = 150  # of the policy, each on a new batch
    learning_rate: float = 1e-3  # falls linearly to zero; about 1e-6 for a real model, 3e-4 with LoRA
    response_tokens: int = 4  # token limit of one response; 512 or more for a real model
    warm_start_steps: int = 800  # steps of next-token prediction on random valid play; only for the tiny model
    vllm: bool = False  # sample with vLLM in the same process (needs a GPU and `pip install "gem-core[vllm]"`)
    seed: int = 0  # decides the model, the games and the sampling
    checkpoint_every: int = 0  # updates; the newest checkpoint stays, and is three times the trained weights
    resume: bool = False  # continue from the newest checkpoint in `output`
    output: str = "runs/trl_guess_the_number"  # folder for curve.png, metrics.jsonl, records, and model/ at the end


def main(options: Options) -> None:
    from peft import LoraConfig

    micro_batch = min(options.micro_batch, options.episodes)
    if options.episodes % micro_batch:
        sys.exit(f"--episodes {options.episodes} is not a multiple of --micro-batch {micro_batch}")
    model, tokenizer = options.model, None
    if model == "tiny":
        from gem_tiny import tiny_policy

        model, tokenizer = tiny_policy(options.env, warm_start_steps=options.warm_start_steps, seed=options.seed)
    args = TurnGRPOConfig(
        options.output,
        env=[*options.env],
        advantage=options.advantage,
        gamma=options.gamma,
        vector_backend="sync",  # for environments that answer at once; "thread" for others, see docs/vectors.md
        per_device_train_batch_size=micro_batch,
        gradient_accumulation_steps=options.episodes // micro_batch,
        max_steps=options.updates,
        max_completion_length=options.response_tokens,
        learning_rate=options.learning_rate,
        entropy_coef=0.04 if options.model == "tiny" else 0.0,
        adam_beta2=0.95,
        max_grad_norm=0.5,
        use_vllm=options.vllm,
        system_prompt=options.system_prompt,
        bf16=options.bf16,
        save_strategy="steps" if options.checkpoint_every else "no",
        save_steps=options.checkpoint_every or 1,
        save_total_limit=1,
        seed=options.seed,
        logging_steps=1,
        report=options.output,
        record="full",  # for `gem-core view`
    )
    lora = LoraConfig(r=options.lora, lora_alpha=2 * options.lora, target_modules="all-linear")
    trainer = TurnGRPOTrainer(model, args, tokenizer, peft_config=lora if options.lora else None)
    trainer.train(resume_from_checkpoint=options.resume)
    trainer.save_model(f"{options.output}/model")


if __name__ == "__main__":
    import tyro

    main(tyro.cli(Options))
