r"""Teach a real language model a game of three turns on a CPU, in TRL's own GRPOTrainer, with one reward per turn.

    python trl_smollm2.py       # SmolLM2-135M-Instruct; several minutes on two cores

The model guesses a number in plain words. First it learns from random valid play how an answer looks, then from rewards
which one is good. After each step it plays held-out games, whose numbers it never trains on.
"""

from dataclasses import dataclass
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback

from gem_evaluation import success_rate
from gem_tiny import warm_start
from gem_train.models import model_folder
from gem_trl import TurnGRPOConfig, TurnGRPOTrainer


@dataclass
class Options:
    model: str = "smollm2"  # a name, a path or a hub id of a chat model
    env: tuple[str, ...] = ("game:PlainGuess-v0",)  # environments to train on
    held_out: tuple[str, ...] = ("game:PlainGuess-v0-test",)  # environments to evaluate on
    held_out_games: int = 72  # per evaluation; a multiple of `episodes`
    system_prompt: str = "You guess numbers."  # short: on a CPU each token counts
    warm_start_steps: int = 6  # of next-token prediction on random valid play; 0: rewards alone
    advantage: str = "rebn"  # estimator: rebn, rebn_loo, reinforce, grpo, drgrpo, rloo, turn_grpo or gigpo
    gamma: float = 0.9  # discount per turn
    episodes: int = 24  # per update
    updates: int = 12  # of the policy, each on a new batch
    learning_rate: float = 4e-4  # falls linearly to zero
    lora_rank: int = 16  # of the adapters of all linear layers
    response_tokens: int = 6  # token limit of one response
    seed: int = 0  # decides the adapters, the games and the sampling
    output: str = "runs/trl_smollm2"  # folder for `model` (the adapters), curve.png, metrics.jsonl and records


def main(options: Options) -> None:
    torch.manual_seed(options.seed)
    folder = model_folder(options.model)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype="float32")  # bfloat16 is slow on many CPUs
    tokenizer = AutoTokenizer.from_pretrained(folder)
    adapters = LoraConfig(r=options.lora_rank, lora_alpha=2 * options.lora_rank, target_modules="all-linear")
    args = TurnGRPOConfig(
        options.output,
        env=[*options.env],
        eval_env=[*options.held_out],
        eval_episodes=options.held_out_games,
        eval_on_start=True,
        eval_strategy="steps",
        eval_steps=options.updates,
        per_device_eval_batch_size=options.episodes,
        advantage=options.advantage,
        gamma=options.gamma,
        system_prompt=options.system_prompt,
        vector_backend="sync",
        per_device_train_batch_size=options.episodes,
        max_steps=options.updates,
        max_completion_length=options.response_tokens,
        learning_rate=options.learning_rate,
        adam_beta2=0.95,
        max_grad_norm=0.5,
        seed=options.seed,
        logging_steps=1,
        save_strategy="no",
        report=options.output,
        record="full",  # for `gem-core view`
    )
    trainer = TurnGRPOTrainer(get_peft_model(model, adapters), args, tokenizer, callbacks=[Scores()])
    if options.warm_start_steps:
        trainer.evaluate()
        warm_start(
            model,
            tokenizer,
            options.env,
            steps=options.warm_start_steps,
            batch=options.episodes,
            learning_rate=options.learning_rate,
            seed=options.seed,
            on_step=lambda step, loss: print(f"random valid play, step {step + 1}: loss {loss:.2f}", flush=True),
        )
    trainer.train()
    trainer.save_model(f"{options.output}/model")


class Scores(TrainerCallback):
    """Prints the success of each evaluation, with its 95 % interval."""

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: dict[str, float], **_: Any) -> None:
        games = args.eval_episodes
        won = round(metrics["eval_episode/success"] * games)
        success = success_rate([[game < won] for game in range(games)])
        print(f"success in {games} held-out games after {state.global_step} updates: {success}", flush=True)


if __name__ == "__main__":
    import tyro

    main(tyro.cli(Options))
