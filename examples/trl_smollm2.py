r"""Teach a real language model a game of three turns on a CPU, in TRL's own GRPOTrainer, with one reward per turn.

    python trl_smollm2.py       # SmolLM2-135M-Instruct; several minutes on two cores

The model guesses a number in plain words. Before and after, it plays held-out games, whose numbers it never trains on.
"""

from dataclasses import dataclass
from typing import Any

from peft import LoraConfig
from transformers import TrainerCallback

from gem_evaluation import success_rate
from gem_train.models import model_folder
from gem_trl import TurnGRPOConfig, TurnGRPOTrainer


@dataclass
class Options:
    model: str = "smollm2"  # a name, a path or a hub id of a chat model
    env: tuple[str, ...] = ("game:PlainGuess-v0",)  # environments to train on
    held_out: tuple[str, ...] = ("game:PlainGuess-v0-test",)  # environments to evaluate on, before and after
    system_prompt: str = "You guess numbers."  # short: on a CPU each token counts
    advantage: str = "rebn"  # estimator: rebn, rebn_loo, reinforce, grpo, drgrpo, rloo, turn_grpo or gigpo
    gamma: float = 0.9  # discount per turn
    episodes: int = 24  # per update
    updates: int = 40  # of the policy, each on a new batch
    learning_rate: float = 3e-4
    lora_rank: int = 16  # of the adapters of all linear layers
    response_tokens: int = 6  # token limit of one response
    held_out_games: int = 72  # per evaluation; a multiple of `episodes`
    seed: int = 0  # decides the games and the sampling
    output: str = "runs/trl_smollm2"  # folder for the adapter, curve.png, metrics.jsonl and records


def main(options: Options) -> None:
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
        lr_scheduler_type="constant",
        adam_beta2=0.95,
        max_grad_norm=0.5,
        seed=options.seed,
        logging_steps=1,
        save_strategy="no",
        report=options.output,
        record="full",  # for `gem-core view`
    )
    adapters = LoraConfig(r=options.lora_rank, lora_alpha=2 * options.lora_rank, target_modules="all-linear")
    trainer = TurnGRPOTrainer(model_folder(options.model), args, peft_config=adapters, callbacks=[Scores()])
    trainer.train()
    trainer.save_model()


class Scores(TrainerCallback):
    """Prints the success of each evaluation, with its 95 % interval."""

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: dict[str, float], **_: Any) -> None:
        games = args.eval_episodes
        won = round(metrics["eval_episode/success"] * games)
        success = success_rate([[game < won] for game in range(games)])
        print(f"after {state.global_step} updates, success in {games} held-out games: {success}", flush=True)


if __name__ == "__main__":
    import tyro

    main(tyro.cli(Options))
