r"""Teach a real language model a game of three turns on a CPU, in TRL's own GRPOTrainer, with one reward per turn.

    python trl_smollm2.py       # SmolLM2-135M-Instruct; several minutes on two cores

The model guesses a number in plain words. First it learns from random valid play how an answer looks, then from rewards
which one is good. After each step it plays held-out games, whose numbers it never trains on.
"""

from dataclasses import dataclass
from typing import Any

from gem_evaluation import success_rate
from gem_trl import ProgressCallback, TurnGRPOConfig, TurnGRPOTrainer


@dataclass
class Options:
    model: str = "smollm2"  # a name, a path or a hub id of a chat model
    env: tuple[str, ...] = ("game:PlainGuess-v0",)  # environments to train on
    held_out: tuple[str, ...] = ("game:PlainGuess-v0-test",)  # environments to evaluate on
    held_out_games: int = 72  # per evaluation; a multiple of `episodes`
    system_prompt: str = "You guess numbers."  # short: on a CPU each token counts
    warm_start_steps: int = 6  # of next-token prediction on random valid play; 0: rewards alone
    episodes: int = 24  # per update
    updates: int = 12  # of the policy, each on a new batch
    learning_rate: float = 4e-4  # falls linearly to zero
    lora: int = 16  # rank of the adapters of all linear layers
    response_tokens: int = 6  # token limit of one response
    seed: int = 0  # decides the adapters, the games and the sampling
    output: str = "runs/trl_smollm2"  # folder for `model` (the adapters), curve.png, metrics.jsonl and records


def main(options: Options) -> None:
    from peft import LoraConfig

    from gem_tiny import warm_start

    args = TurnGRPOConfig(
        options.output,
        env=[*options.env],
        eval_env=[*options.held_out],
        eval_episodes=options.held_out_games,
        eval_on_start=True,
        eval_strategy="steps",
        eval_steps=options.updates,
        per_device_eval_batch_size=options.episodes,
        advantage="rebn",
        gamma=0.9,  # discount per turn
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
    lora = LoraConfig(r=options.lora, lora_alpha=2 * options.lora, target_modules="all-linear")
    trainer = TurnGRPOTrainer(options.model, args, peft_config=lora, callbacks=[Progress(", ".join(options.env))])
    if steps := options.warm_start_steps:
        trainer.evaluate()
        model, rate = trainer.model.get_base_model(), options.learning_rate
        reading: dict[str, Any] = {"batch": options.episodes, "learning_rate": rate, "seed": options.seed}
        warm_start(model, trainer.processing_class, options.env, steps=steps, **reading)
    trainer.train()
    trainer.save_model(f"{options.output}/model")


class Progress(ProgressCallback):
    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: dict[str, float], **_: Any) -> None:
        """Print the success in the held-out games, with its 95 % interval."""
        won = round(metrics["eval_episode/success"] * args.eval_episodes)
        success = success_rate([[game < won] for game in range(args.eval_episodes)])
        print(
            f"success in {args.eval_episodes} held-out games after {state.global_step} updates: {success}", flush=True
        )


if __name__ == "__main__":
    import tyro

    main(tyro.cli(Options))
